"""Rows that another devbench made are made anew, whatever it knew of a document."""

from __future__ import annotations

import threading
import zlib
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text
from synthetic import measured
from test_hub_storage import names, put, running

from bench.hub.db import queries, records, renewal
from bench.hub.db.database import Database
from bench.hub.db.tables import RESULTS

pytestmark = pytest.mark.once


def rows(connection: Connection) -> list[dict[str, Any]]:
    """All rows, without what another one has after each change."""
    found = connection.execute(RESULTS.select().order_by(RESULTS.c.id)).mappings()
    return [{name: value for name, value in row.items() if name != "stamp"} for row in found]


def made_by_another(database: Database) -> None:
    """Leaves the rows as a devbench would have made them that knew less."""
    with database.write() as connection:
        less = {"made_by": "0.0.9", "title": "t", "series": "s", "head": "{}", "gauges": "{}", "stamp": 0}
        connection.execute(RESULTS.update().values(less))


def renewed(database: Database) -> int:
    return renewal.renew(database, threading.Event())


def test_rows_of_another_devbench_are_made_anew_from_their_documents(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renewal, "BATCH", 2)
    for n in range(5):
        put(database, measured(str(n), [0.1, 0.2]), 1_000_000 * n)
    with database.read() as connection:
        before = rows(connection)
    made_by_another(database)
    assert renewed(database) == 5
    with database.read() as connection:
        assert rows(connection) == before
        assert queries.version(connection)[1] > 0
    assert renewed(database) == 0


def test_a_document_that_can_not_be_read_any_more_keeps_its_row(database: Database) -> None:
    for name in ("1", "2", "3"):
        put(database, measured(name, [0.1]))
    made_by_another(database)
    with database.write() as connection:
        changed = text("UPDATE documents SET body = :body WHERE id = '2'")
        connection.execute(changed, {"body": zlib.compress(b'{"schema_version": 0}')})
    assert renewed(database) == 2
    with database.read() as connection:
        assert [row["title"] for row in rows(connection)] == ["cifar", "t", "cifar"]


def test_what_comes_anew_while_rows_are_made_anew_stays(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    put(database, measured("1", [0.1], status="partial"))
    made_by_another(database)
    real = records.row

    def meanwhile(*given: Any) -> dict[str, Any]:
        monkeypatch.setattr(records, "row", real)
        put(database, measured("1", [0.1, 0.2]))
        return real(*given)

    monkeypatch.setattr(records, "row", meanwhile)
    assert renewed(database) == 0
    with database.read() as connection:
        (row,) = rows(connection)
    assert (row["status"], row["processes"]) == ("complete", 2)


def test_tables_that_do_not_say_who_made_a_row_are_brought_up_to_date_with_their_results(database: Database) -> None:
    put(database, measured("1", [0.1]))
    with database.read() as connection:
        before = rows(connection)
    with database.write() as connection:
        for change in (
            "DROP INDEX ix_results_made_by_id",
            "ALTER TABLE results DROP COLUMN made_by",
            "UPDATE alembic_version SET version_num = '0001'",
        ):
            connection.execute(text(change))
    database.upgrade()
    assert names(database) == ["1"]
    assert renewed(database) == 1
    with database.read() as connection:
        assert rows(connection) == before


@pytest.mark.needs("posix")
def test_a_hub_tells_at_its_start_what_an_older_one_did_not_know_of_its_results(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "hub.db"))
    database.upgrade()
    put(database, measured("1", [0.1]))
    made_by_another(database)
    database.close()
    with running(tmp_path) as (process, hub):
        while b"devbench_result_step_seconds{" not in hub.ask("GET", "/metrics").data:
            assert process.started.poll() is None
