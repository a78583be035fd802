"""The commands that talk to a hub or keep its database: what they say if they are interrupted or cannot go on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bench.cli.app import app
from bench.model.result import SCHEMA_VERSION
from bench.publish.hub.client import Client

pytestmark = pytest.mark.once

HUB = "http://hub.example"


def interrupted(*_: Any) -> Any:
    """Stand in for a function during which the user presses Ctrl-C."""
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("push", ".", "--hub", HUB), "the hub keeps what it has received. Push again to send the rest"),
        (("await", "cpu=cifar", "--hub", HUB), "the Jobs go on"),
        (("hub", "import", "hub.jsonl", "--database", "hub.db"), "an import keeps what it has stored"),
    ],
)
def test_an_interruption_says_what_is_kept(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bench.hub.db.exchange.import_from", interrupted)
    for name in ("get", "put"):
        monkeypatch.setattr(Client, name, interrupted)
    (tmp_path / "explanations").mkdir()
    (tmp_path / "explanations" / "a.json").write_text("{}", encoding="utf-8")
    command = CliRunner().invoke(app, list(words))
    assert (command.exit_code, message in command.stderr) == (130, True)


def test_an_export_without_a_database_is_refused_and_keeps_the_last_file(tmp_path: Path) -> None:
    file, missing, empty = tmp_path / "hub.jsonl", tmp_path / "missing.db", tmp_path / "empty.db"
    file.write_text("a good backup", encoding="utf-8")
    empty.touch()
    for name in (missing, empty):
        command = CliRunner().invoke(app, ["hub", "export", str(file), "--database", str(name)])
        assert command.exit_code == 2
        assert f"{name.name} is not the database of a hub" in command.stderr
    assert file.read_text(encoding="utf-8") == "a good backup"
    assert not missing.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="links need a permission there")
def test_files_that_cannot_be_sent_do_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def request(self: Client, method: str, path: str, name: str, *_: Any) -> dict[str, Any]:
        sent.append(path)
        return {"id": name, "outcome": "created"}

    sent: list[str] = []
    explanations, outbox = tmp_path / "explanations", tmp_path / "outbox"
    for folder in (explanations, outbox, explanations / "folder.json"):
        folder.mkdir()
    fields = dict.fromkeys(("id", "key", "fingerprint", "purpose"), 5)
    number = json.dumps({"schema_version": SCHEMA_VERSION, "created": "2026-01-01T00:00:00Z", **fields})
    broken = {"number.json": f"{number}\n", "nested.json": "[" * 100_000, "binary.json": "\0\0"}
    for name, content in broken.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "loop.json").symlink_to("loop.json")
    for name, content in {"a": "[" * 100_000, "b": json.dumps({"file": "\0.json", "hub": HUB}), "c": "5"}.items():
        (outbox / f"{name}.note").write_text(content, encoding="utf-8")
    (explanations / "z.json").write_text("{}", encoding="utf-8")
    monkeypatch.setattr(Client, "_request", request)
    command = CliRunner().invoke(app, ["push", str(tmp_path), "--hub", HUB])
    assert (command.exit_code, sent) == (1, ["/api/v1/explanations/z"])
    assert "the hub did not store 5 of 6 documents" in command.stderr
