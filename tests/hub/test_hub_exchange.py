"""Export and import of everything that a hub holds."""

from __future__ import annotations

import gzip
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hubs import RunningHub
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from synthetic import explanation, ladder_results, measured
from test_hub_runs import run, send
from test_hub_storage import names, put

from bench.errors import DataError, UsageError
from bench.hub.db import (
    documents,
    edits,
    exchange,
    explanation_queries,
    result_queries,
    run_queries,
    writes,
)
from bench.hub.db.database import Database
from bench.hub.db.sqlite_file import DatabaseReplaced
from bench.model.result import SCHEMA_VERSION
from bench.model.run_state import MESSAGE_VERSION, TITLE

pytestmark = pytest.mark.once


@pytest.mark.parametrize("name", ["everything.jsonl", "everything.jsonl.gz"])
def test_an_export_moves_everything_to_another_hub_and_back(hub: RunningHub, tmp_path: Path, name: str) -> None:
    for n in range(5):
        hub.send(measured(str(n), [0.1, 0.2], workload="é\x00<b>"))
    send(hub, run("active"))
    send(hub, run("ended", state="interrupted", reason="why"))
    hub.put("/api/v1/explanations/why", explanation(ladder_results()).model_dump_json().encode())
    file = tmp_path / name
    assert exchange.export_to(hub.database, file) == 8
    other = Database(str(tmp_path / "other.db"))
    other.upgrade()
    assert [exchange.import_from(other, file), exchange.import_from(other, file)] == [8, 8]
    second_file = tmp_path / f"again-{name}"
    exchange.export_to(other, second_file)
    opener = gzip.open if name.endswith(".gz") else open
    with opener(file, "rt", encoding="utf-8") as first, opener(second_file, "rt", encoding="utf-8") as second:
        assert first.read() == second.read()
    other.close()


def test_an_import_does_not_replace_later_states(database: Database, tmp_path: Path) -> None:
    older = explanation(ladder_results())
    newer = older.model_copy(update={"label": "newer"})
    writes.put_explanation(database, older, older.model_dump_json().encode())
    writes.put_run(database, run("r"), received=3_000_000)  # a clock that was ahead
    exchange.export_to(database, tmp_path / "all.jsonl")
    writes.put_explanation(database, newer, newer.model_dump_json().encode())
    with database.write() as connection:
        connection.execute(text("UPDATE runs SET last_seen = 2000000"))
    assert exchange.import_from(database, tmp_path / "all.jsonl") == 2
    with database.read() as connection:
        assert explanation_queries.explanation(connection, older.id).label == "newer"
        assert run_queries.run(connection, "r", 0).last_seen == 2_000_000


def test_an_import_annotates_a_result_that_the_hub_already_has(database: Database, tmp_path: Path) -> None:
    put(database, measured("1", [0.1]), 1)
    edits.annotate(database, "1", edits.Annotations(tags=["nightly"], note="before the upgrade"))
    exchange.export_to(database, tmp_path / "all.jsonl")
    edits.annotate(database, "1", edits.Annotations(tags=[], note=""))
    exchange.import_from(database, tmp_path / "all.jsonl")
    with database.read() as connection:
        row = result_queries.result_row(connection, "1")
    assert (row.tags.split(), row.note) == (["nightly"], "before the upgrade")


def test_an_import_skips_a_result_that_differs_from_the_stored_one(database: Database, tmp_path: Path) -> None:
    for name, seconds in (("1", 0.1), ("2", 0.2)):
        result = measured(name, [seconds])
        writes.put_result(database, result, result.model_dump_json().encode())
    exchange.export_to(database, tmp_path / "all.jsonl")
    text = (tmp_path / "all.jsonl").read_text(encoding="utf-8").replace('\\"pid\\":4001', '\\"pid\\":4999')
    (tmp_path / "all.jsonl").write_text(text, encoding="utf-8")
    assert exchange.import_from(database, tmp_path / "all.jsonl") == 2
    with database.read() as connection:
        assert result_queries.result(connection, "1").samples[0].pid == 4001


def test_importing_a_result_of_an_older_devbench_says_that_it_is_too_old(database: Database, tmp_path: Path) -> None:
    for n in range(3):
        put(database, measured(str(n), [0.1]))
    file = tmp_path / "all.jsonl"
    exchange.export_to(database, file)
    current, older = f'\\"schema_version\\":{SCHEMA_VERSION}', '\\"schema_version\\":1'
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join([*lines[:2], lines[2].replace(current, older), *lines[3:]]), encoding="utf-8")
    other = Database(str(tmp_path / "other.db"))
    other.upgrade()
    with pytest.raises(DataError, match="line 3: the result is too old: it has schema version 1") as caught:
        exchange.import_from(other, file)
    assert "Measure again" in caught.value.hint
    assert "Imported 2 of 3 documents." in caught.value.hint
    assert sorted(names(other)) == ["0", "2"]
    other.close()


@pytest.mark.parametrize("received", [999999999999999999, -1, 2**63, 1.5, True, None, "1"])
def test_importing_an_impossible_time_of_receipt_fails(database: Database, tmp_path: Path, received: Any) -> None:
    put(database, measured("1", [0.1]), 1_000_000)
    file = tmp_path / "all.jsonl"
    exchange.export_to(database, file)
    file.write_text(file.read_text(encoding="utf-8").replace("1000000}", f"{json.dumps(received)}}}"), encoding="utf-8")
    other = Database(str(tmp_path / "other.db"))
    other.upgrade()
    with pytest.raises(DataError, match="line 2: invalid time of receipt"):
        exchange.import_from(other, file)
    other.close()


def test_importing_a_damaged_file_fails_and_keeps_what_came_before(database: Database, tmp_path: Path) -> None:
    for n in range(3):
        put(database, measured(str(n), [0.1]))
    file, cut = tmp_path / "all.jsonl", tmp_path / "cut.jsonl"
    exchange.export_to(database, file)
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    other = Database(str(tmp_path / "other.db"))
    other.upgrade()
    for text_, message in (
        ("".join(lines[:-1]), "truncated"),
        ("".join(lines[:2]) + lines[2][:50], "truncated"),
        ("".join([*lines[:2], lines[-1]]), "truncated"),
        ("{}\n", "not an export"),
        ("", "truncated"),
        (json.dumps({exchange.FORMAT_KEY: 2}) + "\n", "newer version of devbench"),
        (lines[0] + json.dumps({"result": "{}", "received": 1}) + "\n" + '{"end": 1}\n', "line 2: invalid result"),
    ):
        cut.write_text(text_, encoding="utf-8")
        with pytest.raises(DataError, match=message):
            exchange.import_from(other, cut)
    assert sorted(names(other)) == ["0", "1", "2"]
    other.close()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Database]:
    """Another, empty database."""
    database = Database(str(tmp_path / "other.db"))
    database.upgrade()
    yield database
    database.close()


def write_export(file: Path, *entries: dict[str, Any] | str) -> None:
    """Write an export with the given entries; texts are lines as they are."""
    documents = [{exchange.FORMAT_KEY: 1}, *entries, {"end": len(entries)}]
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in documents]
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")


def result_entry(name: str, **changes: Any) -> dict[str, Any]:
    return {"result": measured(name, [0.1], **changes).model_dump_json(), "received": 1_000_000}


LONG_TEXT = "x" * (documents.LONGEST + 1)
DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"result": "\ud800", "received": 1}, "not valid Unicode"),
        ({"result": '{"id": "\\ud800"}', "received": 1}, "not valid JSON"),
        ({"run": "\ud800", "received": 1}, "not a JSON object"),
        ({"deleted": "\ud800", "precedence": 1, "received": 1}, "invalid deletion"),
        pytest.param({"run": DEEP, "received": 1}, "nested too deeply", id="deep run"),
        pytest.param({"result": DEEP, "received": 1}, "not valid JSON", id="deep result"),
        pytest.param('{"result": ' + DEEP, "nested too deeply", id="deep line"),
        ("[1]", "not a JSON object"),
        ({"explanation": "{}", "received": 1}, "invalid explanation"),
        ({"result": "{}", "received": -1}, "invalid time of receipt"),
    ],
)
def test_an_import_skips_what_cannot_be_stored_and_names_it(
    other: Database, tmp_path: Path, bad: dict[str, Any] | str, why: str
) -> None:
    file = tmp_path / "all.jsonl"
    write_export(file, result_entry("1"), bad, result_entry("2"), bad, result_entry("3"))
    with pytest.raises(DataError, match=f"line 3: .*{why}") as caught:
        exchange.import_from(other, file)
    assert "Not imported: line 5: " in caught.value.hint
    assert "Imported 3 of 5 documents." in caught.value.hint
    assert sorted(names(other)) == ["1", "2", "3"]


def test_the_message_of_an_import_has_a_limited_length(other: Database, tmp_path: Path) -> None:
    write_export(tmp_path / "all.jsonl", *["[]"] * 100)
    with pytest.raises(DataError) as caught:
        exchange.import_from(other, tmp_path / "all.jsonl")
    assert "Not imported: 79 other documents.\nImported 0 of 100 documents." in caught.value.hint


def test_texts_that_an_older_hub_stored_are_imported(other: Database, tmp_path: Path) -> None:
    why = explanation(ladder_results()).model_copy(update={"caveats": [LONG_TEXT]})
    state = json.loads(run("r", reason=LONG_TEXT, state="failed").model_dump_json()) | {"title": LONG_TEXT}
    write_export(
        tmp_path / "all.jsonl",
        result_entry("1", notes=[LONG_TEXT]),
        {"run": json.dumps(state), "received": 1_000_000},
        {"explanation": why.model_dump_json(), "received": 1_000_000},
    )
    assert exchange.import_from(other, tmp_path / "all.jsonl") == 3
    with other.read() as connection:
        assert result_queries.result(connection, "1").notes == [LONG_TEXT]
        stored = run_queries.run(connection, "r", 0).run
    assert (stored.title, stored.reason) == (LONG_TEXT[:500], LONG_TEXT)
    assert exchange.export_to(other, tmp_path / "again.jsonl") == 3


def fail_with(error: Exception) -> Any:
    def work(*_: Any, **__: Any) -> None:
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "message", "hint"),
    [
        (OperationalError("", {}, sqlite3.OperationalError("database or disk is full")), "disk is full", "Free some"),
        (DatabaseReplaced("hub.db was replaced"), "was replaced", "--database"),
    ],
)
def test_a_database_that_fails_during_an_import_is_the_users_error(
    other: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str, hint: str
) -> None:
    write_export(tmp_path / "all.jsonl", result_entry("1"), {"run": run().model_dump_json(), "received": 1_000_000})
    monkeypatch.setattr(writes, "put_run", fail_with(error))
    with pytest.raises(DataError, match=message) as caught:
        exchange.import_from(other, tmp_path / "all.jsonl")
    assert hint in caught.value.hint
    assert "Imported 1 document before the error." in caught.value.hint
    monkeypatch.setattr(exchange, "_entries", fail_with(error))
    with pytest.raises(UsageError, match=message):
        exchange.export_to(other, tmp_path / "new.jsonl")
    assert not (tmp_path / "new.jsonl").exists()


def test_an_import_that_skips_documents_has_an_exit_code(tmp_path: Path) -> None:
    write_export(tmp_path / "all.jsonl", "[]", result_entry("1"))
    words = [sys.executable, "-m", "bench", "hub", "import", str(tmp_path / "all.jsonl")]
    command = subprocess.run([*words, "--database", str(tmp_path / "hub.db")], capture_output=True, text=True)
    assert command.returncode == 2
    assert "line 2: it is not a JSON object" in command.stderr
    assert "Imported 1 of 2 documents." in command.stderr


def test_runs_that_newer_limits_would_refuse_stay_listed(hub: RunningHub) -> None:
    for name in ("long", "older", "invalid", "broken"):
        send(hub, run(name, results=["1"], reason="why"))
    changes: dict[str, Any] = {
        "long": {"title": LONG_TEXT},
        "older": {"schema_version": MESSAGE_VERSION - 1, "unknown": 1},
        "invalid": {"progress": 1, "title": None, "devbench": {}, "heartbeat_seconds": -1},
    }
    with hub.database.write() as connection:
        for name, change in changes.items():
            document = json.loads(run(name, results=["1"], reason="why").model_dump_json()) | change
            connection.execute(
                text("UPDATE runs SET document = :document WHERE id = :id"),
                {"document": json.dumps(document), "id": name},
            )
        connection.execute(text("UPDATE runs SET document = '[' WHERE id = 'broken'"))
    listed = {item["run"]["id"]: item["run"] for item in hub.get("/api/v1/runs")["runs"]}
    assert {name: (item["title"], item["results"], item["reason"]) for name, item in listed.items()} == {
        "long": (LONG_TEXT[:500], ["1"], "why"),
        "older": ("cifar", ["1"], "why"),
        "invalid": ("", ["1"], "why"),
        "broken": ("", [], ""),
    }
    assert {item["state"] for item in listed.values()} == {"running"}
    for path in ("/runs", *(f"/runs/{name}" for name in listed), *(f"/api/v1/runs/{name}" for name in listed)):
        assert hub.request("GET", path).status == 200
    for name in listed:
        assert send(hub, run(name, state="failed", observed=True, reason="OOMKilled")) == "updated"


def test_the_maximum_length_of_a_title_is_that_of_a_run() -> None:
    longest = run(title="x" * TITLE)
    with pytest.raises(ValueError, match="at most 500 characters"):
        run(title=longest.title + "x")
