"""A PostgreSQL server for the tests: a cluster in a new folder, on a free port."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

USERS = ("postgres", "nobody")
"""Users that may run the server if the tests run as root, which PostgreSQL refuses."""


def programs() -> Path | None:
    """Return the folder of the newest server on this machine, or None."""
    debian_paths = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    path = shutil.which("initdb")
    initdb = debian_paths[-1] if debian_paths else Path(path) if path else None
    return initdb.parent if initdb and (initdb.parent / "postgres").exists() else None


@dataclass
class Cluster:
    """A running server."""

    port: int
    numbers: Iterator[int]

    def database(self) -> str:
        """Create an empty database and return its URL."""
        import psycopg

        name = f"d{next(self.numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)

    def url(self, name: str) -> str:
        """Return the URL of a database."""
        return f"postgresql://devbench@127.0.0.1:{self.port}/{name}"


@contextmanager
def cluster(durable: bool = False) -> Iterator[Cluster]:
    """Start a server, and stop it at the end.

    Args:
        durable: whether a commit waits for the disk. Tests that only kill hubs do not need it.
    """
    folder = Path(tempfile.mkdtemp(prefix="devbench-pg-"))
    user = _user()
    if user:
        shutil.chown(folder, user)
    bin_dir = programs()
    assert bin_dir
    data = str(folder / "data")
    initdb = [
        str(bin_dir / "initdb"),
        "--pgdata",
        data,
        "--auth",
        "trust",
        "--username",
        "devbench",
        "--no-sync",
    ]
    try:
        subprocess.run(initdb, check=True, capture_output=True, user=user, cwd=folder)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "", "max_connections": 100}
        if not durable:
            options |= {"fsync": "off"}
        arguments = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [str(bin_dir / "postgres"), "-D", data, *arguments],
                stdout=log,
                stderr=log,
                user=user,
                cwd=folder,
            )
        try:
            _wait_until_ready(port, server, folder / "log")
            yield Cluster(port, count(1))
        finally:
            server.terminate()
            server.wait(60)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _user() -> str | None:
    """Return the user that runs the server, or None for the user that runs the tests."""
    if sys.platform == "win32" or os.geteuid() != 0:
        return None
    import pwd

    existing = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in USERS if name in existing), None)


def _wait_until_ready(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    for _ in range(1200):
        try:
            psycopg.connect(f"postgresql://devbench@127.0.0.1:{port}/postgres", connect_timeout=5).close()
        except psycopg.OperationalError:
            assert server.poll() is None, log.read_text()
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"PostgreSQL did not start: {log.read_text()}")
