"""The hub's settings: options, variables, the file's table, and their documentation."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT, first_column, section

from bench.cli.app import load as load_command
from bench.config.hub_settings import HubSettings, load
from bench.config.settings import load as load_run
from bench.errors import SettingsError
from bench.hub.db.result_queries import Filters
from bench.hub.db.tables import RESULTS
from bench.hub.web.auth import Access

pytestmark = pytest.mark.once

EXAMPLES: dict[str, list[tuple[str, Any]]] = {
    "database": [("a", "a"), ("b", "b"), ("c", "c")],
    "host": [("::1", "::1"), ("127.0.0.2", "127.0.0.2"), ("localhost", "localhost")],
    "port": [("1", 1), ("2", 2), ("3", 3)],
    "root_path": [("/a", "/a"), ("/b/c/", "/b/c"), ("/", "")],
    "allowed_hosts": [("a", ("a",)), ("b,*.c", ("b", "*.c")), ("d", ("d",))],
    "tokens_file": [("a", Path("a")), ("b", Path("b")), ("c", Path("c"))],
    "readers_file": [("a", Path("a")), ("b", Path("b")), ("c", Path("c"))],
    "threshold": [("5%", 0.05), ("0.04", 0.04), ("1.5%", 0.015)],
    "keep_days": [("90", 90), ("1.5d", 1.5), ("12h", 0.5)],
    "keep_results": [("4", 4), ("5", 5), ("6", 6)],
}
"""Three values of each field, as text and parsed."""


@pytest.fixture(autouse=True)
def clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [variable for variable in os.environ if variable.upper().startswith("DEVBENCH_")]:
        monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", EXAMPLES)
def test_options_override_variables_which_override_the_file_which_overrides_defaults(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (by_file, file_value), (by_variable, variable_value), (by_option, option_value) = EXAMPLES[name]
    assert getattr(load(), name) == HubSettings.model_fields[name].default
    Path("devbench.toml").write_text(f'backend = "cuda"\n[server]\n{name} = "{by_file}"\n', encoding="utf-8")
    assert getattr(load(), name) == file_value
    assert load_run().backend == ("cuda",)  # a run ignores the table
    monkeypatch.setenv(HubSettings.variable(name), by_variable)
    assert getattr(load(), name) == variable_value
    assert getattr(load(**{name: by_option}), name) == option_value


def test_every_setting_is_documented_with_its_option_and_its_variable() -> None:
    assert set(EXAMPLES) == set(HubSettings.model_fields)
    table = section((ROOT / "docs" / "hub.md").read_text(encoding="utf-8"), "Settings")
    assert first_column(table) == {f"--{name.replace('_', '-')}" for name in EXAMPLES}
    assert [name for name in EXAMPLES if f"`{HubSettings.variable(name)}`" not in table] == []
    options = {name for parameter in load_command("hub").params for name in parameter.opts if name.startswith("--")}
    assert options - {"--config", "--json"} == first_column(table)


def test_an_invalid_setting_is_reported_with_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="invalid value 'x' for --port"):
        load(port="x")
    monkeypatch.setenv("DEVBENCH_HUB_PORT", "70000")
    with pytest.raises(SettingsError, match="invalid value '70000' for DEVBENCH_HUB_PORT") as caught:
        load()
    assert caught.value.hint == "Use a whole number of 65535 or less."
    monkeypatch.delenv("DEVBENCH_HUB_PORT")
    Path("devbench.toml").write_text("[server]\nkeep_result = 1\n", encoding="utf-8")
    with pytest.raises(SettingsError, match="unknown key 'keep_result'") as caught:
        load()
    assert "keep_results" in caught.value.hint
    Path("devbench.toml").write_text("[server]\nkeep_days = 0\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"invalid value '0' for 'keep_days' under \[server\] in devbench.toml"):
        load()
    with pytest.raises(SettingsError, match="no settings file"):
        load(config="none.toml")


def test_short_or_unreadable_secrets_are_refused(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    with pytest.raises(SettingsError, match="cannot read"):
        Access(load(tokens_file=tokens))
    tokens.write_text("short\n", encoding="utf-8")
    with pytest.raises(SettingsError, match="has only 5 characters"):
        Access(load(tokens_file=tokens))
    tokens.write_text("# nobody\n", encoding="utf-8")
    nobody = Access(load(tokens_file=tokens, host="0.0.0.0"))
    with pytest.raises(Exception, match="writing requires a token"):
        nobody.check_write(None)


def test_a_file_of_tokens_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("\ufeff0123456789abcdef\r\n", encoding="utf-8")
    Access(load(tokens_file=tokens)).check_write("Bearer 0123456789abcdef")


@pytest.mark.needs("posix")
def test_a_file_of_tokens_must_be_a_regular_file(tmp_path: Path) -> None:
    if sys.platform == "win32":
        raise NotImplementedError
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path):
        with pytest.raises(SettingsError, match="is not a regular file"):
            Access(load(tokens_file=path))


def test_a_reader_needs_a_colon_and_a_token_has_no_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secrets"
    path.write_text("# comment\nme:0123456789abcdef\n0123456789abcdef0\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"line 3 of .*secrets is not USER:PASSWORD"):
        Access(load(readers_file=path))
    path.write_text("0123456789 abcdef\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"line 1 of .*secrets is not a token without spaces"):
        Access(load(tokens_file=path))
    monkeypatch.setenv("DEVBENCH_HUB_READERS", "0123456789abcdef")
    with pytest.raises(SettingsError, match="entry 1 of DEVBENCH_HUB_READERS is not USER:PASSWORD"):
        Access(load())


def test_a_file_without_secrets_gives_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "empty").touch()
    Access(load(tokens_file=tmp_path / "empty", readers_file=tmp_path / "empty"))
    assert [record.message.partition(" holds ")[2] for record in caplog.records] == [
        "no secret. Nobody can write.",
        "no secret. Only tokens can read.",
    ]


def test_secrets_may_come_from_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="everyone who can reach"):
        Access(load(host="0.0.0.0"))
    monkeypatch.setenv("DEVBENCH_HUB_TOKENS", "0123456789abcdef, fedcba9876543210")
    access = Access(load(host="0.0.0.0"))
    access.check_write("Bearer fedcba9876543210")
    access.check_write("bearer 0123456789abcdef")


def test_every_filter_of_the_list_of_results_is_a_column() -> None:
    assert Filters.model_fields.keys() - {"limit", "cursor", "tag"} <= set(RESULTS.c.keys())  # `tag` is one of `tags`
