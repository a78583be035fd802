"""The file of an SQLite database, and whether somebody replaced or deleted it while the hub runs.

SQLite does not notice. It would store in the old file, which is lost when the hub ends.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

FileIdentity = tuple[int, int]
"""Device and inode."""

WAL = "-wal"
"""Suffix of the write-ahead log."""


class DatabaseReplaced(SQLAlchemyError):
    """The database's file is not the one that was opened."""


class SqliteFile:
    """The files of an open database. Its own connection keeps the write-ahead log open, so the log stays the same file.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._connection.execute("SELECT count(*) FROM sqlite_master").fetchall()  # opens the log
        self._opened = self._identities()

    def check(self) -> None:
        """Check that the database is still in the files that were opened.

        Raises:
            DatabaseReplaced: it is not.
        """
        if self._identities() != self._opened:
            raise DatabaseReplaced(f"{self.path} or {self.path.name}{WAL} was replaced or deleted while the hub ran")

    def close(self) -> None:
        """Move the write-ahead log into the file, so that the file alone holds everything."""
        with suppress(sqlite3.Error):  # otherwise the log stays, and the next hub reads it
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._connection.close()

    def _identities(self) -> list[FileIdentity | None]:
        return [_identity(path) for path in (self.path, self.path.with_name(self.path.name + WAL))]


def _identity(path: Path) -> FileIdentity | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
