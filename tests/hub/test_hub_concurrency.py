"""Work that threads share: cached values, and writes that are committed together."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from bench.hub.db.database import Database
from bench.hub.web.cache import Cached

pytestmark = pytest.mark.once


def test_one_thread_computes_a_cached_value_while_the_others_wait() -> None:
    kept, made, ready = Cached[str](), [], threading.Barrier(8)

    def make() -> str:
        made.append(threading.get_ident())
        time.sleep(0.05)
        return "page"

    def ask() -> str:
        ready.wait()
        return kept.get((1, 1), make)

    with ThreadPoolExecutor(8) as pool:
        assert {asked.result() for asked in [pool.submit(ask) for _ in range(8)]} == {"page"}
    assert len(made) == 1
    assert kept.get((2, 1), lambda: "another") == "another"


def test_a_failing_write_does_not_affect_the_writes_committed_with_it(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "hub.db"))
    with database.write() as connection:
        connection.execute(text("CREATE TABLE numbers (number INTEGER)"))
    held, go_on = threading.Event(), threading.Event()

    def first(connection: Connection) -> None:
        held.set()
        assert go_on.wait(30)

    def add(number: int) -> int:
        def work(connection: Connection) -> int:
            connection.execute(text("INSERT INTO numbers VALUES (:number)"), {"number": number})
            return 10 // number

        return database.transact(work)

    with ThreadPoolExecutor(5) as pool:
        begun = pool.submit(database.transact, first)
        assert held.wait(30)
        added = [pool.submit(add, number) for number in (1, 0, 2, 5)]
        go_on.set()
        begun.result()
        assert isinstance(added[1].exception(), ZeroDivisionError)
        assert [added[n].result() for n in (0, 2, 3)] == [10, 5, 2]
    with database.read() as connection:
        assert sorted(connection.execute(text("SELECT number FROM numbers")).scalars()) == [1, 2, 5]
    database.close()
