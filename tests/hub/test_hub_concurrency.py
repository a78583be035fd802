"""Work that threads share: cached values, and writes that are committed together."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from bench.hub.db.database import Database
from bench.hub.web import cache as caches
from bench.hub.web.cache import Cached
from bench.hub.web.threads import ARRIVAL, START, WAITING

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


def test_a_busy_hub_shows_a_value_of_the_last_seconds_and_waits_for_no_newer_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cache, computing, release = Cached[str](), threading.Event(), threading.Event()

    def ask(waiting: int, version: int) -> str:
        WAITING.set(waiting)

        def compute() -> str:
            computing.set()
            assert release.wait(30)
            return f"page {version}"

        return cache.get((version, 0), compute)

    assert cache.get((0, 0), lambda: "page 0") == "page 0"
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(ask, 0, 1)
        assert computing.wait(30)
        assert pool.submit(ask, caches.MANY + 1, 1).result(30) == "page 0"
        release.set()
        assert slow.result() == "page 1"
        assert pool.submit(ask, caches.MANY + 1, 2).result() == "page 1"
        monkeypatch.setattr(caches, "BUSY_AGE", 0.0)
        monkeypatch.setattr(caches, "BUSY_SHARE", 1e-9)
        assert pool.submit(ask, caches.MANY + 1, 2).result() == "page 1"  # it took long, so it may be older
        monkeypatch.setattr(caches, "BUSY_SHARE", 1e9)
        assert pool.submit(ask, caches.MANY + 1, 3).result() == "page 3"


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
