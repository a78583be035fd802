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
from bench.hub.web.threads import ARRIVAL, START

pytestmark = pytest.mark.once


def test_one_thread_computes_a_cached_value_while_the_others_wait() -> None:
    cache, computed_by, ready = Cached[str](), [], threading.Barrier(8)

    def make() -> str:
        computed_by.append(threading.get_ident())
        time.sleep(0.05)
        return "page"

    def ask() -> str:
        ready.wait()
        return cache.get((1, 1), make)

    with ThreadPoolExecutor(8) as pool:
        assert {future.result() for future in [pool.submit(ask) for _ in range(8)]} == {"page"}
    assert len(computed_by) == 1
    assert cache.get((2, 1), lambda: "another") == "another"


def test_requests_that_arrived_before_a_computation_share_it_although_results_change_meanwhile() -> None:
    cache, computed = Cached[str](), []

    def ask(arrival: float, start: float, version: int) -> str:
        ARRIVAL.set(arrival)
        START.set(start)

        def compute() -> str:
            computed.append(version)
            return f"page {version}"

        return cache.get((version, 0), compute)

    with ThreadPoolExecutor(1) as pool:
        pages = [pool.submit(ask, 1.0, 2.0 + version, version).result() for version in range(5)]
        assert pages == ["page 0"] * 5
        assert pool.submit(ask, 2.5, 9.0, 5).result() == "page 5"
    assert computed == [0, 5]


def test_a_failing_write_does_not_affect_the_writes_committed_with_it(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "hub.db"))
    with database.write() as connection:
        connection.execute(text("CREATE TABLE numbers (number INTEGER)"))
    started, release = threading.Event(), threading.Event()

    def first(connection: Connection) -> None:
        started.set()
        assert release.wait(30)

    def add(number: int) -> int:
        def work(connection: Connection) -> int:
            connection.execute(text("INSERT INTO numbers VALUES (:number)"), {"number": number})
            return 10 // number

        return database.transact(work)

    with ThreadPoolExecutor(5) as pool:
        blocker = pool.submit(database.transact, first)
        assert started.wait(30)
        futures = [pool.submit(add, number) for number in (1, 0, 2, 5)]
        release.set()
        blocker.result()
        assert isinstance(futures[1].exception(), ZeroDivisionError)
        assert [futures[n].result() for n in (0, 2, 3)] == [10, 5, 2]
    with database.read() as connection:
        assert sorted(connection.execute(text("SELECT number FROM numbers")).scalars()) == [1, 2, 5]
    database.close()
