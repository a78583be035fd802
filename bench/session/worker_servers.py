"""The worker servers of a command, from which workers are forked: one for each set of environment variables.

TensorFlow and the libraries below it read variables when they are imported. So a worker is forked only from a server
that was started with exactly its variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import IO

from bench.session.process import Process, spawn
from bench.session.worker_server import ServerEnded, WorkerServer
from bench.signals import uninterrupted

MOST = 4
"""Most servers at a time, beside those whose workers still run. Each holds the memory of an imported TensorFlow."""

SERVER_BYTES = 2**29
"""Memory of an imported TensorFlow. Its workers share most of it."""


class WorkerServers:
    """Starts a server when it is first needed. Ends all of them when the command ends.

    Attributes:
        problem: Why the last server that was asked for could not start. "" if it did.
    """

    def __init__(self) -> None:
        self.problem = ""
        self._servers: dict[tuple[tuple[str, str], ...], WorkerServer] = {}  # the least recently used one first

    def __enter__(self) -> WorkerServers:
        """Return this object. Leaving the block ends its servers."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the servers."""
        with uninterrupted():
            for server in self._servers.values():
                server.close()
            self._servers.clear()

    @property
    def pids(self) -> list[int]:
        """The process ids of the servers."""
        return [server.pid for server in self._servers.values()]

    def has(self, variables: Mapping[str, str]) -> bool:
        """Return whether a server for these variables was started."""
        return _key(variables) in self._servers

    def prepare(self, variables: Mapping[str, str]) -> None:
        """Start the server for these variables in the background, unless it runs."""
        key = _key(variables)
        with uninterrupted():  # `__exit__` must know every server that was started
            if key in self._servers and self._servers[key].ended:
                self._end(key)
            server = self._servers.pop(key, None)
            if server is None:
                idle = [other for other, running in self._servers.items() if running.idle]
                for other in idle[: max(0, len(self._servers) + 1 - MOST)]:
                    self._end(other)
                server = WorkerServer(variables)
            self._servers[key] = server

    def wait(self, variables: Mapping[str, str], timeout: float) -> bool:
        """Wait until the server for these variables can fork. Start it if it does not run.

        Returns:
            False if it could not start. `problem` says why.
        """
        self.prepare(variables)
        try:
            self._servers[_key(variables)].wait(timeout)
        except ServerEnded as ended:
            self.problem = str(ended)
            self._end(_key(variables))
            return False
        self.problem = ""
        return True

    def fork(self, variables: Mapping[str, str], folder: str, errors: IO[bytes]) -> Process:
        """Fork a worker from a server that was waited for. This is a `bench.session.process.StartProcess`.

        If the server has ended since, the worker is a fresh process, and `problem` says why.
        """
        try:
            return self._servers[_key(variables)].fork(folder, errors)
        except ServerEnded as ended:
            self.problem = str(ended)
            self._end(_key(variables))
            return spawn(variables, folder, errors)

    def _end(self, key: tuple[tuple[str, str], ...]) -> None:
        self._servers.pop(key).close()


def _key(variables: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(variables.items()))
