"""The database: SQLite in one file, or PostgreSQL by its URL.

SQLite keeps a write-ahead log, so readers and the writer do not wait for each other. Every commit is on disk before
the sender gets its response. PostgreSQL does both by default.
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

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from bench.errors import DataError, UsageError
from bench.hub.db.sqlite_file import SqliteFile

MIGRATIONS = Path(__file__).with_name("migrations")
TIMEOUT = 30
"""Seconds to wait for another writer, or for a free connection."""

SQLITE_DRIVERS = ("sqlite", "sqlite+pysqlite")
"""Names of Python's own driver in SQLAlchemy's URLs. Others need packages, and an event loop."""

SQLITE_PARAMETERS = frozenset({"cache", "immutable", "mode", "modeof", "nolock", "psow", "uri", "vfs"})
"""Parameters of SQLite's URLs, and `uri`, which makes SQLAlchemy pass them on. The hub sets the driver's parameters."""

UPGRADE_LOCK = 0x6465_7662
"""PostgreSQL's advisory lock that is held while the tables are upgraded."""

BATCH = 64
"""Maximum number of documents in one transaction."""

T = TypeVar("T")
Work = Callable[[Connection], Any]


class Database:
    """An open database.

    Args:
        name: a file's path, or a URL such as `postgresql://user@host/name`.
    """

    def __init__(self, name: str) -> None:
        self.engine = _engine(name)
        self.sqlite = self.engine.dialect.name == "sqlite"
        self._file: SqliteFile | None = None
        self._writing = threading.Lock()
        self._committing = threading.Lock()
        self._queue: deque[tuple[Work, Future[Any]]] = deque()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a connection that sees one state of the database, however long it reads.

        Raises:
            SQLAlchemyError: the database cannot be read. DatabaseReplaced if its file is another one.
        """
        self._check_file()
        level = {} if self.sqlite else {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with self.engine.connect().execution_options(**level) as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Yield a connection in a transaction: on exit it is on disk, or nothing has changed.

        Raises:
            SQLAlchemyError: the database cannot be written. DatabaseReplaced if its file is another one.
        """
        self._check_file()
        lock = self._writing if self.sqlite else nullcontext()
        with lock, self.engine.connect().execution_options(writes=True) as connection, connection.begin():
            yield connection
        self._check_file()

    def _check_file(self) -> None:
        if self._file is not None:
            self._file.check()

    def transact(self, work: Callable[[Connection], T]) -> T:
        """Run one sender's work in a transaction: on return it is on disk, or nothing has changed.

        Each commit waits for the disk, so concurrent senders share one (group commit). Whoever holds the lock runs
        queued work, up to `BATCH` parts in one transaction. If a part fails, each part runs in its own transaction.
        """
        result: Future[T] = Future()
        self._queue.append((work, result))
        with self._committing:
            while not result.done():
                self._commit([self._queue.popleft() for _ in range(min(len(self._queue), BATCH))])
        return result.result()

    def _commit(self, batch: list[tuple[Work, Future[Any]]]) -> None:
        """Run a batch in one transaction. If a part of it fails, run each part in its own."""
        started = False
        try:
            with self.write() as connection:
                started = True
                outcomes = [work(connection) for work, _ in batch]
        except BaseException as error:  # raised in the thread that queued the work
            if started and len(batch) > 1:
                for item in batch:
                    self._commit([item])
            else:
                for _, result in batch:
                    result.set_exception(error)
        else:
            for (_, result), outcome in zip(batch, outcomes, strict=True):
                result.set_result(outcome)

    def require_tables(self) -> None:
        """Check that the database has the tables of a hub. Make nothing.

        Raises:
            UsageError: it has none, or cannot be read.
        """
        path = _path(self.engine.url)
        try:
            found = not (self.sqlite and path and not path.exists()) and inspect(self.engine).has_table("results")
        except DBAPIError as error:
            raise cannot_use(self, error) from None
        if not found:
            name = self.engine.url.render_as_string()
            raise UsageError(f"{name} is not the database of a hub", "Name the database of the hub with --database.")

    def upgrade(self) -> None:
        """Create or migrate the tables, once even if several hubs start at the same time.

        Raises:
            DataError: a newer version of devbench wrote the tables.
            UsageError: the database cannot be reached or written.
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
                    connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": UPGRADE_LOCK})
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
        except CommandError as error:
            raise DataError(
                f"a newer version of devbench wrote the hub's database: {error}",
                "Upgrade devbench, or choose another database with --database.",
            ) from None
        except DBAPIError as error:
            raise cannot_use(self, error) from None
        path = _path(self.engine.url)
        if self.sqlite and self._file is None and path is not None:
            self._file = SqliteFile(path)

    def close(self) -> None:
        """Close all connections. The file of SQLite then holds everything."""
        if self._file is not None:
            self._file.close()
        self.engine.dispose()


def database_url(name: str) -> str:
    """Return SQLAlchemy's URL of a file's path, or of a PostgreSQL URL with any of its schemes.

    Raises:
        UsageError: the URL is invalid or names another kind of database.
    """
    if "://" not in name:
        return f"sqlite:///{Path(name).absolute()}"
    try:
        url = make_url(name)
    except (ArgumentError, ValueError):  # make_url raises ValueError for a port that is no number
        raise UsageError("invalid value for --database", "Use a file's path or postgresql://….") from None
    if url.get_backend_name() in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
    if url.get_backend_name() == "sqlite":
        if url.database in (None, "", ":memory:"):
            raise UsageError(f"invalid value '{name}' for --database: it names no file", "Use a file's path.")
        if url.drivername not in SQLITE_DRIVERS:
            raise UsageError(f"the hub does not support {url.drivername}", "Use a file's path.")
        if unknown := sorted(set(url.query) - SQLITE_PARAMETERS):
            hint = f"SQLite's parameters are {', '.join(sorted(SQLITE_PARAMETERS))}."
            raise UsageError(f"invalid value '{name}' for --database: unknown parameter '{unknown[0]}'", hint)
        try:
            url.get_dialect()().create_connect_args(url)
        except (TypeError, ValueError) as error:
            raise UsageError(f"invalid value '{name}' for --database: {error}", "Use a file's path.") from None
        return name
    raise UsageError(f"the hub does not support {url.get_backend_name()}", "Use SQLite or PostgreSQL.")


def is_disk_full(error: Exception) -> bool:
    """Return whether a database error means that its disk is full (SQLite's text; PostgreSQL's `disk_full`)."""
    cause = getattr(error, "orig", None)
    return "disk is full" in str(cause) or getattr(cause, "sqlstate", None) == "53100"


def cannot_use(database: Database, error: SQLAlchemyError) -> UsageError:
    """Return what a command says after an error of its database."""
    cause = " ".join(str(getattr(error, "orig", None) or error).split())
    hint = "Free some space there." if is_disk_full(error) else "Set --database to a file's path or postgresql://…."
    return UsageError(f"cannot use the hub's database {database.engine.url.render_as_string()}: {cause}", hint)


def _engine(name: str) -> Engine:
    url = database_url(name)
    if not url.startswith("sqlite"):
        return create_engine(url, pool_size=10, max_overflow=10, pool_timeout=TIMEOUT, pool_pre_ping=True)
    path = _path(make_url(url))
    if path is not None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"cannot make the folder of the hub's database {path}: {error.strerror}", "Choose another --database."
            ) from None
    engine = create_engine(url, connect_args={"timeout": TIMEOUT}, pool_size=10, max_overflow=30, pool_timeout=TIMEOUT)
    event.listen(engine, "connect", _configure)
    event.listen(engine, "begin", _begin)
    return engine


def _path(url: URL) -> Path | None:
    """Return the file that an SQLite URL names; None if SQLite takes the name as a URL of its own."""
    return Path(url.database) if url.database and not url.database.startswith("file:") else None


def _configure(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # otherwise Python's sqlite3 begins transactions by its own rules
    _enable_wal(connection)
    for pragma in ("synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _enable_wal(connection: Any) -> None:
    """Turn the write-ahead log on. SQLite does not wait if another connection does so at the same time."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
