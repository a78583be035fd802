"""The hub's database: migrations, retention, export, import, and copies while the hub runs."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from itertools import count
from pathlib import Path
from typing import Any

import postgres
import pytest
from hubs import HubProcess, RunningHub
from sqlalchemy import Connection, text
from synthetic import explanation, ladder_results, measured
from test_hub_runs import run

from bench.config.hub_settings import HubSettings
from bench.errors import DataError, UsageError
from bench.hub.db import (
    comparisons,
    exchange,
    explanation_queries,
    records,
    result_queries,
    retention,
    run_queries,
    writes,
)
from bench.hub.db.database import Database, database_url
from bench.hub.db.sqlite_file import DatabaseReplaced
from bench.hub.db.tables import METADATA
from bench.model.result import Result

pytestmark = pytest.mark.once


def put(database: Database, result: Result, received: int | None = None) -> None:
    writes.put_result(database, result, result.model_dump_json().encode(), received)


def names(database: Database) -> list[str]:
    with database.read() as connection:
        return [row.id for row in result_queries.results(connection, {}, 500).items]


def test_the_migrations_create_the_tables_that_the_code_declares(database: Database) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with database.write() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def test_hubs_that_start_at_the_same_time_create_the_tables_once(database_url: str) -> None:
    databases = [Database(database_url) for _ in range(4)]
    threads = [threading.Thread(target=database.upgrade) for database in databases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    put(databases[0], measured("1", [0.1]))
    databases[1].upgrade()
    assert names(databases[2]) == ["1"]
    for database in databases:
        database.close()


def test_tables_of_a_newer_version_are_refused(database: Database) -> None:
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(DataError, match="newer version of devbench") as caught:
        database.upgrade()
    assert "Upgrade devbench" in caught.value.hint


def test_an_unusable_database_is_reported_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot use the hub's database") as caught:
        Database("postgresql://nobody:secret@127.0.0.1:1/none").upgrade()
    assert "secret" not in caught.value.message
    assert "--database" in caught.value.hint
    for name in ("sqlite://", "sqlite:///", "sqlite:///:memory:"):
        with pytest.raises(UsageError, match="it names no file"):
            Database(name)
    with pytest.raises(UsageError, match="invalid value"):
        Database("postgresql://me:secret:x@:x/y")
    (tmp_path / "no folder").touch()
    with pytest.raises(UsageError, match="cannot make the folder"):
        Database(str(tmp_path / "no folder" / "hub.db"))
    with pytest.raises(UsageError, match="mysql"):
        database_url("mysql://x/y")
    for name, message in (
        ("sqlite+aiosqlite:///x", r"does not support sqlite\+aiosqlite"),
        ("sqlite+no:///x", r"does not support sqlite\+no"),
        ("sqlite:///x?timeout=abc", "unknown parameter 'timeout'"),
        ("sqlite:///file:x?mode=ro&uri=abc", "for --database: "),
    ):
        with pytest.raises(UsageError, match=message):
            Database(name)
    url = Database(f"sqlite:///file:{tmp_path}/url.db?mode=rwc&uri=true")
    url.upgrade()
    url.close()
    assert (tmp_path / "url.db").exists()
    assert not Path("file:").exists()
    assert database_url("sqlite+pysqlite:///x") == "sqlite+pysqlite:///x"
    assert database_url("sqlite:///file:x?mode=ro&uri=true") == "sqlite:///file:x?mode=ro&uri=true"
    (tmp_path / "file").write_text("no database", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot use the hub's database"):
        Database(str(tmp_path / "file")).upgrade()


@contextmanager
def run_hub_process(folder: Path) -> Iterator[tuple[HubProcess, RunningHub]]:
    """Run a hub in its own process, which is killed at the end."""
    database = str(folder / "hub.db")
    server = HubProcess(database)
    try:
        yield server, RunningHub(server.url, Database(database))
    finally:
        server.kill()


@pytest.mark.needs("posix")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_after_a_stop_the_file_of_the_database_alone_holds_everything(tmp_path: Path, number: signal.Signals) -> None:
    server = HubProcess(str(tmp_path / "hub.db"))
    hub = RunningHub(server.url, Database(str(tmp_path / "hub.db")))
    assert hub.send(measured("1", [0.1])) == "created"
    server.process.send_signal(number)
    assert server.wait() == 0
    shutil.copy(tmp_path / "hub.db", tmp_path / "copy.db")
    hub.database.close()
    assert list(tmp_path.glob("*-wal")) == []
    copy = Database(str(tmp_path / "copy.db"))
    assert names(copy) == ["1"]
    copy.close()


def delete(file: Path) -> None:
    file.rename(file.with_name("moved.db"))


def replace_with_copy(file: Path) -> None:
    file.rename(file.with_name("moved.db"))
    shutil.copy(file.with_name("moved.db"), file)


@pytest.mark.needs("posix")
@pytest.mark.parametrize("name", ["hub.db", "hub.db-wal"])
@pytest.mark.parametrize("change", [delete, replace_with_copy])
def test_a_hub_whose_file_is_replaced_acknowledges_nothing_until_it_is_back(
    tmp_path: Path, name: str, change: Callable[[Path], None]
) -> None:
    with run_hub_process(tmp_path) as (server, hub):
        hub.database.close()
        assert hub.send(measured("1", [0.1])) == "created"
        change(tmp_path / name)
        body = measured("2", [0.1]).model_dump_json().encode()
        response = hub.put("/api/v1/results/2", body)
        assert (response.status, response.json()["type"]) == (503, "urn:devbench:problem:database-replaced")
        assert "Restart the hub" in response.json()["hint"]
        assert [hub.request("GET", path).status for path in ("/", "/readyz", "/metrics", "/healthz")] == [503] * 3 + [
            200
        ]
        (tmp_path / "moved.db").replace(tmp_path / name)
        assert hub.put("/api/v1/results/2", body).json()["outcome"] == "created"
        assert any("was replaced or deleted" in line for line in server.log)


def test_a_file_that_is_replaced_during_a_transaction_is_noticed_before_the_acknowledgement(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "hub.db"))
    database.upgrade()

    def work(connection: Connection) -> None:
        connection.execute(text("UPDATE results SET stamp = 1"))
        replace_with_copy(tmp_path / "hub.db")

    with pytest.raises(DatabaseReplaced):
        database.transact(work)
    database.close()


def test_a_later_state_replaces_an_earlier_one_although_the_clock_was_set_back(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = explanation(ladder_results())
    newer = older.model_copy(update={"label": "newer"})
    writes.put_explanation(database, older, older.model_dump_json().encode())
    writes.put_run(database, run("r"))
    then = records.now() - retention.DAY
    monkeypatch.setattr(records, "now", lambda: then)
    assert writes.put_explanation(database, newer, newer.model_dump_json().encode()) == "updated"
    assert writes.put_explanation(database, newer, newer.model_dump_json().encode()) == "same"
    progress = {"title": "x", "phase": "import"}
    assert writes.put_run(database, run("r", progress=progress)) == "updated"
    with database.read() as connection:
        assert explanation_queries.explanation(connection, older.id).label == "newer"
        stored = run_queries.run(connection, "r", then)
        assert (stored.run.progress is not None, stored.last_seen) == (True, then)
    assert writes.put_run(database, run("r", state="finished")) == "updated"
    assert writes.put_run(database, run("r")) == "superseded"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 3 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.needs("mounts")
def test_a_hub_with_a_full_disk_serves_its_documents_and_stores_more_once_there_is_space(
    small_disk: Path,
) -> None:
    with run_hub_process(small_disk) as (server, hub):
        for number in count():
            result = measured(str(number), [0.1])
            response = hub.put(f"/api/v1/results/{result.id}", result.model_dump_json().encode())
            if response.status != 200:
                break
        problem = response.json()
        assert (response.status, problem["type"]) == (503, "urn:devbench:problem:disk-full")
        assert "full" in problem["detail"]
        assert "Free some space" in problem["hint"]
        assert response.headers["Retry-After"]
    assert any("disk is full" in line for line in server.log)
    with run_hub_process(small_disk) as (_, hub):
        for path in ("/", "/metrics", "/readyz"):
            assert hub.request("GET", path).status == 200
        assert number > 9
        assert hub.get(f"/api/v1/results/{number - 1}")["id"] == f"{number - 1}"
        assert hub.request("GET", f"/api/v1/results/{number}").status == 404
        subprocess.run(["mount", "-o", "remount,size=9m", small_disk], check=True)
        assert hub.send(result) == "created"


def test_documents_older_than_keep_days_are_removed(database: Database) -> None:
    now = records.now()
    for age in (1, 9, 11, 30):
        put(database, measured(str(age), [0.1]), now - age * retention.DAY)
    writes.put_run(database, run("old", state="finished"), now - 11 * retention.DAY)
    writes.put_run(database, run("new", state="finished"), now)
    document = explanation(ladder_results())
    writes.put_explanation(database, document, document.model_dump_json().encode(), now - 11 * retention.DAY)
    assert retention.prune(database, HubSettings(keep_days=10), now) == retention.Removed(2, 1, 1)
    assert names(database) == ["9", "1"]
    with database.read() as connection:
        assert [item.run.id for item in run_queries.runs(connection, now, 9).items] == ["new"]
    assert retention.prune(database, HubSettings(keep_days=10), now) == retention.Removed(0, 0, 0)


@pytest.mark.parametrize("year", [1999, 2099])
def test_a_wrong_clock_of_a_sender_does_not_decide_what_is_removed(database: Database, year: int) -> None:
    created = {"created": datetime(year, 1, 1, tzinfo=timezone.utc)}
    for name, age in (("old", 11), ("new", 9)):
        put(database, measured(name, [0.1]).model_copy(update=created), records.now() - age * retention.DAY)
    assert retention.prune(database, HubSettings(keep_days=10)).results == 1
    assert names(database) == ["new"]


def test_keep_results_removes_the_oldest_results(database: Database, monkeypatch: Any) -> None:
    monkeypatch.setattr(retention, "BATCH", 3)
    for n in range(10):
        put(database, measured(str(n), [0.1]), 1_000_000 * (n + 1))
    assert retention.prune(database, HubSettings(keep_results=4)).results == 6
    assert sorted(names(database)) == ["6", "7", "8", "9"]
    assert retention.prune(database, HubSettings()).results == 0


def test_keep_results_also_removes_results_received_while_the_clock_was_ahead(database: Database) -> None:
    now = records.now()
    for n in range(5):
        put(database, measured(str(n), [0.1]), now + (n - 1) * retention.DAY)
    assert retention.prune(database, HubSettings(keep_results=2), now).results == 3
    assert sorted(names(database)) == ["3", "4"]


def test_a_result_that_is_updated_during_retention_stays(database: Database) -> None:
    for name in ("1", "2"):
        put(database, measured(name, [0.1], status="partial"), 1)
    with database.read() as connection:
        stamps = [(row.id, row.stamp) for row in result_queries.results(connection, {}, 9).items]
    put(database, measured("2", [0.1, 0.1]), 1)
    with database.write() as connection:
        assert writes.remove_results(connection, stamps) == 1
    with database.read() as connection:
        assert len(result_queries.result(connection, "2").samples) == 2
        assert connection.execute(text("SELECT id FROM documents")).scalars().all() == ["2"]


def test_runs_and_explanations_older_than_the_oldest_kept_result_are_removed(database: Database) -> None:
    document = explanation(ladder_results())
    writes.put_explanation(database, document, document.model_dump_json().encode(), 3_000_000)
    for number in range(1, 6):
        put(database, measured(str(number), [0.1]), number * 1_000_000)
        writes.put_run(database, run(f"run-{number}", state="finished"), number * 1_000_000 + 1)
    writes.put_run(database, run("silent"), 1_000_000)
    assert retention.prune(database, HubSettings(keep_results=6)) == retention.Removed(0, 0, 0)
    assert retention.prune(database, HubSettings(keep_results=2)) == retention.Removed(3, 4, 1)
    assert sorted(names(database)) == ["4", "5"]
    with database.read() as connection:
        assert {item.run.id for item in run_queries.runs(connection, records.now(), 9).items} == {"run-4", "run-5"}


def test_cached_comparisons_are_removed_with_their_results(database: Database) -> None:
    put(database, measured("1", [0.1, 0.1, 0.1]), 1)
    put(database, measured("2", [0.2, 0.2, 0.2], backend="cuda"), 2)
    with database.read() as connection:
        digests = [result_queries.result_row(connection, name).digest for name in ("1", "2")]
    pairs = [(("1", "2"), (digests[0], digests[1]))]
    first = comparisons.comparisons(database, pairs, 0.02)
    assert first[digests[0], digests[1]].verdict == "slower"
    assert comparisons.comparisons(database, pairs, 0.02) == first
    assert comparisons.remove_stale(database) == 0
    retention.prune(database, HubSettings(keep_results=1))
    assert comparisons.remove_stale(database) == 0
    with database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM comparisons")).scalar() == 0


def test_a_cached_comparison_of_another_version_is_replaced(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(database, measured("1", [0.1, 0.1, 0.1]))
    put(database, measured("2", [0.2, 0.2, 0.2], backend="cuda"))
    with database.read() as connection:
        pair = (result_queries.result_row(connection, "1").digest, result_queries.result_row(connection, "2").digest)

    def verdict() -> str:
        return comparisons.comparisons(database, [(("1", "2"), pair)], 0.02)[pair].verdict

    def replace_verdict(word: str) -> int:
        """Change the cached verdict, so that it differs from a new one, and return the number of changed rows."""
        with database.write() as connection:
            changed = text("UPDATE comparisons SET document = replace(document, '\"slower\"', :word)")
            return connection.execute(changed, {"word": f'"{word}"'}).rowcount

    verdict()
    assert (replace_verdict("faster"), verdict()) == (1, "faster")
    monkeypatch.setattr(comparisons, "__version__", "9999")
    assert verdict() == "slower"
    assert (replace_verdict("undecided"), verdict()) == (1, "undecided")


def test_an_unreadable_cached_comparison_is_replaced(hub: RunningHub) -> None:
    for number, (backend, step) in enumerate((("cpu", 0.2), ("cuda", 0.1))):
        hub.send(measured(str(number), [step, step, step], backend=backend))
    page = hub.request("GET", "/").data
    assert b"faster" in page
    with hub.database.write() as connection:
        assert connection.execute(text('UPDATE comparisons SET document = \'{"of": "a newer one"}\'')).rowcount == 1
        connection.execute(text("UPDATE results SET stamp = stamp + 1"))  # otherwise the page is not rendered again
    response = hub.request("GET", "/")
    assert (response.status, response.data) == (200, page)


@contextmanager
def incoming_results(hub: RunningHub) -> Iterator[list[str]]:
    """Send results continuously, and yield the ids of those that the hub has acknowledged so far."""
    stop = threading.Event()
    acknowledged: list[str] = []

    def write() -> None:
        for n in count(100):
            if stop.is_set():
                return
            hub.send(measured(str(n), [0.1]))
            acknowledged.append(str(n))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield acknowledged
    finally:
        stop.set()
        writer.join()


def test_an_export_while_results_arrive_is_one_consistent_view(hub: RunningHub, tmp_path: Path) -> None:
    """The export holds every result that was acknowledged before it started."""
    for n in range(20):
        hub.send(measured(str(n), [0.1]))
    with incoming_results(hub):
        count = exchange.export_to(hub.database, tmp_path / "live.jsonl")
    other = Database(str(tmp_path / "other.db"))
    other.upgrade()
    assert exchange.import_from(other, tmp_path / "live.jsonl") == count
    assert {str(n) for n in range(20)} <= set(names(other))
    other.close()


@pytest.mark.needs("sqlite3")
def test_the_tools_of_the_database_copy_it_while_results_arrive(
    hub: RunningHub, database_url: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The copy holds every result that was acknowledged before, as the documentation promises."""
    with incoming_results(hub) as acknowledged:
        while len(acknowledged) < 30:
            time.sleep(0.01)
        before = list(acknowledged)
        if database_url.startswith("postgresql"):
            target = request.getfixturevalue("cluster").database()
            programs = postgres.programs()
            assert programs
            dumped = subprocess.run([programs / "pg_dump", database_url], capture_output=True, check=True)
            words = [programs / "psql", "--quiet", "--set", "ON_ERROR_STOP=1", target]
            subprocess.run(words, input=dumped.stdout, stdout=subprocess.DEVNULL, check=True)
        else:
            target = str(tmp_path / "copy.db")
            subprocess.run(["sqlite3", database_url, f".backup {target}"], check=True)
    assert len(acknowledged) > len(before)
    restored = Database(target)
    restored.upgrade()
    restored_names = names(restored)
    assert set(before) <= set(restored_names)
    with restored.read() as connection:
        assert [result_queries.result(connection, name).id for name in restored_names] == restored_names
    restored.close()


def test_sqlites_backup_copies_the_database_while_the_hub_runs(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "hub.db"))
    database.upgrade()
    put(database, measured("1", [0.1]))
    with sqlite3.connect(tmp_path / "hub.db") as source, sqlite3.connect(tmp_path / "copy.db") as copy:
        source.backup(copy)
    source.close()
    copy.close()
    put(database, measured("2", [0.1]))
    restored = Database(str(tmp_path / "copy.db"))
    restored.upgrade()
    assert names(restored) == ["1"]
    restored.close()
    database.close()


def test_connections_that_open_a_new_file_at_once_wait_for_each_other(tmp_path: Path) -> None:
    """SQLite does not wait if several connections enable the write-ahead log at the same time."""
    errors: list[Exception] = []

    def create_table(database: Database, ready: threading.Barrier) -> None:
        ready.wait()
        try:
            with database.write() as connection:
                connection.execute(text("CREATE TABLE IF NOT EXISTS some (a)"))
        except Exception as error:
            errors.append(error)

    for number in range(100):
        ready = threading.Barrier(8)
        databases = [Database(str(tmp_path / f"{number}.db")) for _ in range(8)]
        threads = [threading.Thread(target=create_table, args=(database, ready)) for database in databases]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for database in databases:
            database.close()
    assert errors == []
