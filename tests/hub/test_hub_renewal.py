"""Renewal of rows that another version of devbench wrote."""

from __future__ import annotations

import threading
import zlib
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text
from synthetic import measured
from test_hub_storage import put, run_hub_process

from bench.hub.db import records, renewal, result_queries
from bench.hub.db.database import Database
from bench.hub.db.tables import RESULTS

pytestmark = pytest.mark.once


def rows(connection: Connection) -> list[dict[str, Any]]:
    """Return all rows without their stamps, which change with every write."""
    stored = connection.execute(RESULTS.select().order_by(RESULTS.c.id)).mappings()
    return [{name: value for name, value in row.items() if name != "stamp"} for row in stored]


def make_outdated(database: Database) -> None:
    """Change the rows as if an older version of devbench had written them."""
    with database.write() as connection:
        outdated = {"writer": "0.0.9", "title": "t", "comparison_key": "s", "header": "{}", "gauges": "{}", "stamp": 0}
        connection.execute(RESULTS.update().values(outdated))


def renew(database: Database) -> int:
    return renewal.renew(database, threading.Event())


def test_rows_of_another_version_are_computed_again_from_their_documents(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renewal, "BATCH", 2)
    for n in range(5):
        put(database, measured(str(n), [0.1, 0.2]), 1_000_000 * n)
    with database.read() as connection:
        before = rows(connection)
    make_outdated(database)
    assert renew(database) == 5
    with database.read() as connection:
        assert rows(connection) == before
        assert result_queries.version(connection)[1] > 0
    assert renew(database) == 0


def test_the_row_of_a_document_with_a_long_text_is_renewed(database: Database) -> None:
    """A hub of an older version stored such texts, and an import still does."""
    put(database, measured("1", [0.1], notes=["x" * 10_001]))
    make_outdated(database)
    assert renew(database) == 1


def test_the_row_of_an_unreadable_document_stays(database: Database) -> None:
    for name in ("1", "2", "3"):
        put(database, measured(name, [0.1]))
    make_outdated(database)
    with database.write() as connection:
        changed = text("UPDATE documents SET body = :body WHERE id = '2'")
        connection.execute(changed, {"body": zlib.compress(b'{"schema_version": 0}')})
    assert renew(database) == 2
    with database.read() as connection:
        assert [row["title"] for row in rows(connection)] == ["cifar", "t", "cifar"]


def test_a_result_that_is_updated_during_renewal_stays(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    put(database, measured("1", [0.1], status="partial"))
    make_outdated(database)
    real = records.row

    def update_first(*arguments: Any) -> dict[str, Any]:
        monkeypatch.setattr(records, "row", real)
        put(database, measured("1", [0.1, 0.2]))
        return real(*arguments)

    monkeypatch.setattr(records, "row", update_first)
    assert renew(database) == 0
    with database.read() as connection:
        (row,) = rows(connection)
    assert (row["status"], row["processes"]) == ("complete", 2)


@pytest.mark.needs("posix")
def test_a_hub_renews_the_rows_of_an_older_version_when_it_starts(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "hub.db"))
    database.upgrade()
    put(database, measured("1", [0.1]))
    make_outdated(database)
    database.close()
    with run_hub_process(tmp_path) as (server, hub):
        while b"devbench_result_step_seconds{" not in hub.request("GET", "/metrics").data:
            assert server.process.poll() is None
