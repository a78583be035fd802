"""Settings: options, variables and the settings file, their precedence, and errors that name the source."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic.fields import FieldInfo

from bench.config import syntax
from bench.config.base import Settings
from bench.config.hub_settings import HubSettings
from bench.config.settings import RunSettings, groups, load, misspelled_variables
from bench.errors import SettingsError

EXAMPLES: dict[str, list[tuple[str, Any]]] = {
    "backend": [("cuda", ("cuda",)), ("cpu,cuda", ("cpu", "cuda")), ("directml", ("directml",))],
    "loop": [("fit", ("fit",)), ("step,fit", ("step", "fit")), ("fused", ("fused",))],
    "case": [("small", ("small",)), ("small,large", ("small", "large")), ("large", ("large",))],
    "change": [("cache", ("cache",)), ("cache,prefetch", ("cache", "prefetch")), ("graph", ("graph",))],
    "param": [("batch=1", {"batch": "1"}), ("batch=2", {"batch": "2"}), ("batch=3", {"batch": "3"})],
    "env": [("a=/a", {"a": "/a"}), ("a=/b", {"a": "/b"}), ("b=/c", {"b": "/c"})],
    "vary": [
        ("xla=on,off", {"xla": "on,off"}),
        ("batch=8,16", {"batch": "8,16"}),
        ("threads=1,2", {"threads": "1,2"}),
    ],
    "data_dir": [("a", Path("a")), ("b", Path("b")), ("c", Path("c"))],
    "target_error": [("5%", 0.05), ("0.04", 0.04), ("1.5%", 0.015)],
    "threshold": [("5%", 0.05), ("0.04", 0.04), ("1.5%", 0.015)],
    "max_time": [("80s", 80), ("1h30m", 5400), ("15", 15)],
    "worker_timeout": [("90s", 90), ("1h30m", 5400), ("15", 15)],
    "hourly_price": [("0.5", 0.5), ("1", 1.0), ("2.25", 2.25)],
    "currency": [("EUR", "EUR"), ("GBP", "GBP"), ("JPY", "JPY")],
    "profile": [("a", Path("a")), ("b", Path("b")), ("c", Path("c"))],
    "metrics_port": [("0", 0), ("9100", 9100), ("9101", 9101)],
    "metrics_host": [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("10.0.0.1", "10.0.0.1")],
    "scrape_interval": [("15s", 15), ("1m", 60), ("10", 10)],
    "linger": [("15s", 15), ("1m30s", 90), ("0", 0)],
    "hub_wait": [("15s", 15), ("1m30s", 90), ("0", 0)],
    "pushgateway": [("http://a:9091", "http://a:9091"), ("https://b/", "https://b"), ("http://[::1]", "http://[::1]")],
    "output": [("a", Path("a")), ("b", Path("b")), ("c", Path("c"))],
    "args": [("a", ("a",)), ("--b 'c d'", ("--b", "c d")), ("", ())],
    "workdir": [("a", Path("a")), ("b", Path("b")), ("c", Path("c"))],
    "hub": [(f"http://{name}:8080", f"http://{name}:8080") for name in ("a", "b", "c")],
    "hub_token_file": [("a", Path("a")), ("b", Path("b")), ("c", Path("c"))],
    "run_id": [("a", "a"), ("b-0", "b-0"), ("c.1", "c.1")],
}
"""Three values of each setting as text, with their parsed values. `examples` has those of switches and choices."""


def examples(name: str) -> list[tuple[str, Any]]:
    """Return three values of a setting as text, with their parsed values. The first is not the default."""
    if name in EXAMPLES:
        return EXAMPLES[name]
    field = RunSettings.model_fields[name]
    if field.annotation is bool:
        return [("off", False), ("on", True), ("off", False)] if field.default else [("on", True), ("off", False)] * 2
    if get_origin(field.annotation) is Literal:
        others = [value for value in get_args(field.annotation) if value != field.default]
        return [(value, value) for value in (others[0], field.default, others[-1])]
    return [("5", 5), ("6", 6), ("7", 7)]


def is_path(field: FieldInfo) -> bool:
    return Path in (field.annotation, *get_args(field.annotation))


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to an empty folder, and remove all settings from the environment."""
    for name in [variable for variable in os.environ if variable.upper().startswith("DEVBENCH_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def toml(name: str, text: str) -> str:
    """Return the line of a settings file for a setting."""
    key, _, value = text.partition("=")
    tables = {"param": f"[param]\n{key} = {value}\n", "env": f'[env]\n{key} = "{value}"\n'}
    return tables.get(name, f'{name} = "{text}"\n')


@pytest.mark.parametrize("name", RunSettings.model_fields)
def test_an_option_has_precedence_over_the_environment_the_file_and_the_default(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (by_file, file_value), (by_variable, variable_value), (by_option, option_value) = examples(name)[:3]
    default = RunSettings.model_fields[name].default
    assert getattr(load(), name) == default
    Path("devbench.toml").write_text(toml(name, by_file), encoding="utf-8")
    assert getattr(load(), name) == file_value != default
    monkeypatch.setenv(RunSettings.variable(name), by_variable)
    assert getattr(load(), name) == variable_value
    assert getattr(load(**{name: by_option}), name) == option_value


def test_results_of_an_image_go_elsewhere_if_the_folder_is_read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVBENCH_IMAGE", "devbench:cpu")
    assert load().output == Path("results")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert load().output == Path(tempfile.gettempdir()) / "results"
    assert load(output="mine").output == Path("mine")


@pytest.mark.needs("linux")
def test_settings_of_an_image_are_read_in_a_folder_that_was_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVBENCH_IMAGE", "devbench:cpu")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert load().backend == ("cpu",)


@pytest.mark.parametrize(
    ("image", "backend"), [("devbench:cuda", "cuda"), ("devbench:cpu", "cpu"), ("devbench:hub", "cpu"), ("mine", "cpu")]
)
def test_the_default_backend_in_an_image_is_the_backend_of_the_image(
    monkeypatch: pytest.MonkeyPatch, image: str, backend: str
) -> None:
    monkeypatch.setenv("DEVBENCH_IMAGE", image)
    assert load().backend == (backend,)
    assert load(backend="cpu,cuda").backend == ("cpu", "cuda")
    monkeypatch.setenv("DEVBENCH_BACKEND", "directml")
    assert load().backend == ("directml",)


@pytest.mark.parametrize("name", [name for name, field in RunSettings.model_fields.items() if is_path(field)])
def test_a_path_may_begin_with_the_home_folder(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expanded = Path.home() / "x"
    assert getattr(load(**{name: "~/x"}), name) == expanded
    Path("devbench.toml").write_text(f'{name} = "~/x"\n', encoding="utf-8")
    assert getattr(load(), name) == expanded
    monkeypatch.setenv(RunSettings.variable(name), "~nobody-of-this-name/x")
    with pytest.raises(SettingsError) as caught:
        load()
    assert caught.value.hint == "Use a path without '~', because the home folder of ~nobody-of-this-name is not known."


@pytest.mark.parametrize("config", [None, "named.toml"])
def test_a_settings_file_in_a_folder_that_cannot_be_read_is_an_error(
    config: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> bool:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "is_file", refused)
    with pytest.raises(SettingsError, match=f"cannot read {config or 'devbench.toml'}: Permission denied"):
        load(config)


def test_the_path_of_a_settings_file_may_begin_with_the_home_folder() -> None:
    with pytest.raises(SettingsError, match=f"no settings file at {re.escape(str(Path.home()))}"):
        load("~/nothing-of-this-name.toml")


def test_none_and_an_empty_variable_count_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVBENCH_THREADS", "")
    assert load(threads=None, xla=None) == load()


def test_parameters_of_all_sources_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("devbench.toml").write_text("[param]\nbatch = 1\nepochs = 1\nhidden = [10, 20]\n", encoding="utf-8")
    monkeypatch.setenv("DEVBENCH_PARAM", "batch=2,epochs=2")
    assert load(param=["batch=3"]).param == {"batch": "3", "epochs": "2", "hidden": "10,20"}


def test_values_of_toml_types_are_accepted() -> None:
    Path("devbench.toml").write_text(
        'backend = ["cpu", "cuda"]\ntarget_error = 0.05\nmax_time = 90\nfull = true\nthreads = 3\n', encoding="utf-8"
    )
    settings = load()
    assert (settings.backend, settings.target_error, settings.max_time) == (("cpu", "cuda"), 0.05, 90)
    assert (settings.full, settings.threads) == (True, 3)


def test_a_named_settings_file_replaces_the_default_one(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("devbench.toml").write_text("seed = 2\n", encoding="utf-8")
    Path("other.toml").write_text("threads = 2\n", encoding="utf-8")
    assert (load(config="other.toml").seed, load(config="other.toml").threads) == (1, 2)
    monkeypatch.setenv("DEVBENCH_CONFIG", "other.toml")
    assert (load().seed, load().threads) == (1, 2)


def error_of(**options: Any) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        load(**options)
    assert caught.value.exit_code == 2
    return caught.value


def test_an_unknown_key_is_an_error_with_the_file_and_the_nearest_key() -> None:
    Path("devbench.toml").write_text("target_eror = 0.05\n", encoding="utf-8")
    error = error_of()
    assert error.message == "unknown key 'target_eror' in devbench.toml"
    assert error.hint == "Did you mean target_error?"


def test_a_file_that_is_not_toml_is_an_error_with_the_line() -> None:
    Path("devbench.toml").write_text("seed = 1\nbackend = cpu\n", encoding="utf-8")
    assert "devbench.toml is not valid TOML" in error_of().message
    assert "line 2" in error_of().message


def test_a_missing_named_file_is_an_error() -> None:
    assert "nowhere.toml" in error_of(config="nowhere.toml").message


def test_an_unknown_setting_is_an_error_with_the_nearest_setting() -> None:
    error = error_of(max_tme="2m")
    assert (error.message, error.hint) == ("unknown setting 'max_tme'", "Did you mean max_time?")


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("backend", ",", "commas"),
        ("loop", "stepp", "as-written, fit, step, host-batches, resident or fused"),
        ("param", "64", "batch=64"),
        ("dtype", "float16", "mixed_float16"),
        ("xla", "maybe", "auto, on or off"),
        ("tf32", "perhaps", "on or off"),
        ("threads", "0", "Use a whole number of 1 or more."),
        ("seed", "-1", "0 or more"),
        ("seed", "many", "whole number"),
        ("seed", "4294967296", "below 4294967296"),
        ("target_error", "3", "3% or 0.03"),
        ("max_time", "2 minutes", "90s, 2m or 1h30m"),
        ("max_processes", "1.5", "whole number"),
        ("worker_timeout", "-1", "above 0"),
        ("hourly_price", "0", "Use a number above 0."),
        ("hourly_price", "cheap", "a number"),
        ("currency", "euro", "three capital letters"),
        ("metrics_port", "65536", "65535 or less"),
        ("metrics_port", "http", "whole number"),
        ("scrape_interval", "0", "above 0"),
        ("linger", "-1s", "0 for none"),
        ("linger", "a while", "0 for none"),
        ("pushgateway", "pushgateway:9091", "http://pushgateway:9091"),
        ("pushgateway", "http://", "http://pushgateway:9091"),
        ("pushgateway", "http://a b", "http://pushgateway:9091"),
    ],
)
def test_an_error_names_the_invalid_value_its_source_and_the_allowed_values(
    name: str, value: str, allowed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_option = error_of(**{name: value})
    value_shown = value.strip(",")
    assert by_option.message == f"invalid value '{value_shown}' for --{name.replace('_', '-')}"
    assert allowed in by_option.hint
    if name != "param":
        Path("devbench.toml").write_text(f'{name} = "{value}"\n', encoding="utf-8")
        by_file = error_of()
        assert by_file.message == f"invalid value '{value_shown}' for '{name}' in devbench.toml"
        assert allowed in by_file.hint
    monkeypatch.setenv(RunSettings.variable(name), value)
    by_variable = error_of()
    assert by_variable.message == f"invalid value '{value_shown}' for {RunSettings.variable(name)}"
    assert allowed in by_variable.hint


def test_an_error_does_not_show_the_password_of_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVBENCH_PUSHGATEWAY", "ftp://me:s3cret@here/")
    with pytest.raises(SettingsError) as caught:
        load()
    assert caught.value.message == "invalid value 'ftp://here/' for DEVBENCH_PUSHGATEWAY"


def test_one_error_names_all_invalid_values() -> None:
    error = error_of(xla="maybe", threads="0")
    assert "--xla" in error.message
    assert "--threads" in error.message


def test_misspelt_variables_are_found_and_those_of_kubernetes_are_not() -> None:
    environ = {"DEVBENCH_BACKEN": "cuda", "DEVBENCH_PORT_8080_TCP": "x", "DEVBENCH_SEED": "1", "DEVBENCH_CONFIG": "f"}
    assert misspelled_variables(environ) == {"DEVBENCH_BACKEN": "DEVBENCH_BACKEND"}


@pytest.mark.parametrize("kind", [RunSettings, HubSettings])
def test_every_setting_has_a_description_in_full_sentences(kind: type[Settings]) -> None:
    descriptions = {name: field.description or "" for name, field in kind.model_fields.items()}
    assert [name for name, text in descriptions.items() if not text[:1].isupper() and ":" not in text[:10]] == []
    assert [name for name, text in descriptions.items() if not text.endswith(".")] == []


def test_every_setting_belongs_to_one_group_of_the_help() -> None:
    names = [name for names in groups().values() for name in names]
    assert sorted(names) == sorted(RunSettings.model_fields)
    assert all(groups())


def test_settings_have_a_json_schema_for_the_charts_values() -> None:
    properties = RunSettings.model_json_schema()["properties"]
    assert set(properties) == set(RunSettings.model_fields)
    lists = {name for name, field in RunSettings.model_fields.items() if get_origin(field.annotation) is tuple}
    assert {name for name, schema in properties.items() if schema.get("type") == "array"} == {*lists, "args"}
    assert properties["xla"]["enum"] == list(get_args(RunSettings.model_fields["xla"].annotation))


@given(st.floats(min_value=0.001, max_value=359_999, allow_nan=False).map(lambda value: round(value, 3)))
def test_a_written_time_is_read_as_the_same_time(value: float) -> None:
    assert syntax.seconds(syntax.write_seconds(value)) == pytest.approx(value, rel=1e-5)


@given(st.just(0.0) | st.floats(min_value=0.001, max_value=359_999).map(lambda value: round(value, 3)))
def test_a_written_pause_is_read_as_the_same_pause(value: float) -> None:
    assert syntax.pause(syntax.write_seconds(value)) == pytest.approx(value, rel=1e-5)


@given(st.floats(min_value=1e-4, max_value=0.999))
def test_a_written_share_is_read_as_the_same_share(value: float) -> None:
    assert syntax.share(syntax.write_share(value)) == pytest.approx(value, rel=1e-5)


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59))
def test_a_time_is_the_sum_of_its_hours_minutes_and_seconds(hours: int, minutes: int, seconds: int) -> None:
    total = hours * 3600 + minutes * 60 + seconds
    if total:
        assert syntax.seconds(f"{hours}h{minutes}m {seconds}s") == total


WORDS = st.text("abcdefgh-_0123456789", min_size=1, max_size=8)


@given(st.dictionaries(WORDS, st.lists(WORDS, min_size=1, max_size=3).map(",".join), min_size=1, max_size=4))
def test_a_list_of_parameters_is_read_even_if_values_contain_commas(parameters: dict[str, str]) -> None:
    assert syntax.pairs(",".join(f"{name}={value}" for name, value in parameters.items())) == parameters


@given(st.one_of(st.text(), st.floats(), st.integers(), st.booleans(), st.none(), st.lists(st.none() | st.text())))
def test_every_value_is_parsed_or_refused_with_the_syntax(value: object) -> None:
    for parse, syntax_text in (
        (syntax.share, syntax.SHARE),
        (syntax.seconds, syntax.TIME),
        (syntax.pause, syntax.PAUSE),
        (syntax.days, syntax.DAYS),
        (syntax.url, syntax.URL),
        (syntax.names, syntax.NAMES),
        (syntax.pairs, syntax.PAIRS),
    ):
        try:
            parse(value)
        except ValueError as error:
            assert str(error) == syntax_text  # noqa: PT017 - both parsing and refusing are correct


@pytest.mark.parametrize("text", ["1m1m", "m", "", "s", "1d", "nan", "inf", "0", "0s", "1h-3m", "1 2", "-5s"])
def test_an_invalid_time_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="90s, 2m"):
        syntax.seconds(text)
