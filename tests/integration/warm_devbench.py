"""`devbench` with workers that are forked from the server of the tests (`warm_workers.py`).

Run as a program. Its arguments are a `WarmServer` as JSON, and what follows `devbench`. A worker that is fresh
otherwise counts as fresh. Workers that need other variables than the server's are fresh, and so are those of scripts.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any
from unittest.mock import patch

from warm_server import PROGRAM

from bench.__main__ import main
from bench.model.result import Result
from bench.session.launch import Launcher
from bench.session.process import Process, spawn
from bench.session.worker_sample import WorkerSample
from bench.session.worker_server import WorkerServer

START = Launcher.start


class CountsAsFresh:
    """A forked worker whose sample says that it is fresh."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def __getattr__(self, name: str) -> Any:
        return getattr(self._process, name)


class SharedServer(WorkerServer):
    """The server, as a process sees it that did not start it.

    Args:
        descriptor: that of its socket.
        variables: environment variables of its workers.
        fresh: loops whose workers are fresh.
    """

    def __init__(self, descriptor: int, variables: Mapping[str, str], fresh: Sequence[str]) -> None:
        self._connection = socket.socket(fileno=descriptor)
        self._ready = True
        self._workers = []
        self._variables = variables
        self._fresh = fresh
        self._loop = ""

    @property
    def ended(self) -> bool:
        """Whether it has ended. It outlives this process."""
        return False

    def close(self) -> None:
        """Leave it to its other users."""

    def disconnect(self) -> None:
        """Close the socket of this process."""
        self._connection.close()

    def of(self, variables: Mapping[str, str]) -> WorkerServer:
        """Return this server, or a new one for other variables. This stands in for `WorkerServer`."""
        return self if variables == self._variables else WorkerServer(variables)

    def launch(self, launcher: Launcher, result: Result, *args: Any, **options: Any) -> WorkerSample:
        """Start a worker of a result. This stands in for `Launcher.start`."""
        self._loop = result.spec.loop
        return START(launcher, result, *args, **options)

    def start(self, variables: Mapping[str, str], folder: str, errors: IO[bytes]) -> Any:
        """Start a process. This stands in for `bench.session.process.spawn`."""
        if variables != self._variables or self._loop in self._fresh:
            return spawn(variables, folder, errors)
        return CountsAsFresh(self.fork(folder, errors))

    def read(self, command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """Read a user's program. This stands in for `subprocess.run` in `bench.registry`."""
        return self.run(PROGRAM, command[-1], options["input"])

    def run(self, kind: str, text: str, input_text: str = "") -> subprocess.CompletedProcess[str]:
        """Run a process that is no worker, and wait for it.

        Args:
            kind: `PROGRAM` or `SCRIPT`.
            text: the path of the program, or the script.
            input_text: what the process reads.
        """
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
            Path(folder, kind).write_text(text, encoding="utf-8")
            process = self.fork(folder, errors)
            with process.stdin, process.stdout:
                process.stdin.write(input_text.encode())
                process.stdin.close()
                output = process.stdout.read().decode()
            code = process.wait()
            errors.seek(0)
            return subprocess.CompletedProcess((kind, text), code, output, errors.read().decode(errors="replace"))


@contextmanager
def warm_start(server: SharedServer, short: bool) -> Iterator[None]:
    """Let this process fork its workers.

    Args:
        server: forks them.
        short: whether a trial has fewer blocks than usual.
    """
    replaced = {
        "bench.session.launch.Launcher.start": lambda *args, **options: server.launch(*args, **options),
        "bench.session.launch.spawn": server.start,
        "bench.session.worker_servers.WorkerServer": server.of,
        "bench.registry.subprocess": SimpleNamespace(run=server.read, TimeoutExpired=subprocess.TimeoutExpired),
    }
    if short:
        replaced |= {"bench.session.interleave.BLOCKS": 8, "bench.session.stopping.PILOT_SECONDS": 20.0}
    with ExitStack() as stack:
        for target, value in replaced.items():
            stack.enter_context(patch(target, value))
        yield


if __name__ == "__main__":
    arguments = json.loads(sys.argv.pop(1))
    short = arguments.pop("short")
    with warm_start(SharedServer(**arguments), short):
        main()
