"""The database: SQLite in one file, or PostgreSQL by its URL, brought up to date when it is opened.

SQLite keeps a write-ahead log, so that readers and the one writer don't wait for each other, and every commit is on
the disk before the sender hears of it. PostgreSQL does both by itself.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError

from bench.errors import DataError, UsageError

MIGRATIONS = Path(__file__).with_name("migrations")
WAIT = 30
"""Seconds that a writer waits for another one, and a connection for its turn."""

LOCK = 0x6465_7662
"""PostgreSQL's advisory lock of whoever brings the tables up to date."""


BATCH = 64
"""Documents of one transaction, at most."""

T = TypeVar("T")


class Database:
    """An open database.

    Args:
        url: SQLAlchemy's, such as `sqlite:////var/lib/devbench/hub.db` or `postgresql://user@host/name`.
    """

    def __init__(self, url: str) -> None:
        self.engine = _engine(url)
        self.sqlite = self.engine.dialect.name == "sqlite"
        self._writing = threading.Lock()
        self._turn = threading.Lock()
        self._waiting: deque[tuple[Callable[[Connection], Any], Future[Any]]] = deque()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees one state of everything, however long it reads."""
        level = {} if self.sqlite else {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with self.engine.connect().execution_options(**level) as connection, connection.begin():
            yield connection

    def run(self, work: Callable[[Connection], T]) -> T:
        """Does one sender's work in a transaction that is on the disk when this returns, or has not happened.

        Each commit waits for the disk. So whoever waits for its turn is served by the one before: all that has come
        meanwhile goes into one transaction, and where a part of it fails, each goes into one of its own.
        """
        own: Future[T] = Future()
        self._waiting.append((work, own))
        with self._turn:
            while not own.done():
                self._serve()
        return own.result()

    def _serve(self) -> None:
        """Does all work that waits."""
        self._do([self._waiting.popleft() for _ in range(min(len(self._waiting), BATCH))])

    def _do(self, batch: list[tuple[Callable[[Connection], Any], Future[Any]]]) -> None:
        """Does work in one transaction; where a part of it fails, each in one of its own."""
        begun = False
        try:
            with self.write() as connection:
                begun = True
                outcomes = [work(connection) for work, _ in batch]
        except BaseException as error:  # whoever asked for it is told
            if begun and len(batch) > 1:
                for each in batch:
                    self._do([each])
            else:
                for _, answer in batch:
                    answer.set_exception(error)
        else:
            for (_, answer), outcome in zip(batch, outcomes, strict=True):
                answer.set_result(outcome)

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is on the disk when this ends, or has not happened."""
        alone = self._writing if self.sqlite else nullcontext()
        with alone, self.engine.connect().execution_options(writes=True) as connection, connection.begin():
            yield connection

    def upgrade(self) -> None:
        """Makes the tables, or changes those of an older devbench, once, however many hubs start at a time.

        Raises:
            DataError: the tables are of a newer devbench.
            UsageError: the database can't be reached or written.
        """
        from alembic import command
        from alembic.config import Config
        from alembic.util import CommandError

        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
        config.set_main_option("path_separator", "newline")
        try:
            with self.write() as connection:
                if not self.sqlite:
                    connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
        except CommandError as error:
            raise DataError(
                f"the hub's database is of a newer devbench: {error}", "Upgrade devbench, or name another database."
            ) from None
        except DBAPIError as error:
            raise unreachable(self.engine.url.render_as_string(), error) from None

    def close(self) -> None:
        """Closes all connections."""
        self.engine.dispose()


def unreachable(url: str, error: DBAPIError) -> UsageError:
    """What a user is told of a database that does not answer."""
    why = " ".join(str(error.orig).split())
    return UsageError(
        f"the hub's database {url} can't be used: {why}", "--database names it: a file, or postgresql://…"
    )


def is_full(error: Exception) -> bool:
    """Whether a database failed for want of room on its disk (SQLite's text; PostgreSQL's `disk_full`)."""
    cause = getattr(error, "orig", None)
    return "disk is full" in str(cause) or getattr(cause, "sqlstate", None) == "53100"


def address(named: str) -> str:
    """SQLAlchemy's URL of what a user wrote: a file's path, or a URL of PostgreSQL by any of its names.

    Raises:
        UsageError: it is a URL of something else.
    """
    if "://" not in named:
        return f"sqlite:///{Path(named).absolute()}"
    try:
        url = make_url(named)
    except ArgumentError:
        raise UsageError(f"the hub's database can't be '{named}'", "Write a file's path, or postgresql://…") from None
    if url.get_backend_name() in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
    if url.get_backend_name() == "sqlite":
        return named
    raise UsageError(f"the hub has no use for a database of {url.get_backend_name()}", "SQLite and PostgreSQL are.")


def _engine(named: str) -> Engine:
    url = address(named)
    if not url.startswith("sqlite"):
        return create_engine(url, pool_size=10, max_overflow=10, pool_timeout=WAIT, pool_pre_ping=True)
    path = make_url(url).database
    if path:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, connect_args={"timeout": WAIT}, pool_size=10, max_overflow=30, pool_timeout=WAIT)
    event.listen(engine, "connect", _connected)
    event.listen(engine, "begin", _begun)
    return engine


def _connected(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # else Python's module begins transactions by rules of its own
    _keep_log(connection)
    for pragma in ("synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _keep_log(connection: Any) -> None:
    """Turns the write-ahead log on. SQLite does not wait for others that do so at the same moment; this does."""
    end = time.monotonic() + WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
        time.sleep(0.01)


def _begun(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
