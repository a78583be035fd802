"""The process of a worker, as its parent holds it, and how it is started as a fresh one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import IO, Any, Protocol

from bench.config.secret_variables import SECRETS
from bench.machine import system
from bench.model.spec import Env

TEMPORARY = ("TMPDIR", "TEMP", "TMP")
"""Variables that name the folder for temporary files. Each worker has its own, which is removed however it ends."""


class Process(Protocol):
    """A running worker, with the part of the interface of `subprocess.Popen` that its parent uses.

    Attributes:
        pid: Its process id, which is also its process group, except on Windows.
        stdin: Takes orders.
        stdout: Yields events.
    """

    pid: int
    stdin: IO[bytes]
    stdout: IO[bytes]

    def poll(self) -> int | None:
        """Return the exit code, or the negative number of the signal that killed it. None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends and return its exit code.

        Raises:
            subprocess.TimeoutExpired: It still runs after `timeout` seconds.
        """

    def send_signal(self, sig: int) -> None:
        """Send it a signal. Do nothing if it has ended."""


class StartProcess(Protocol):
    """A way to start a worker."""

    def __call__(self, variables: Mapping[str, str], folder: str, errors: IO[bytes]) -> Process:
        """Start a worker.

        Args:
            variables: Environment variables that it needs besides the parent's own.
            folder: Its folder for temporary files.
            errors: Takes its stderr.
        """


class Spawned(subprocess.Popen[bytes]):
    """A fresh process, in a session of its own."""

    stdin: IO[bytes]
    stdout: IO[bytes]


def spawn(variables: Mapping[str, str], folder: str, errors: IO[bytes]) -> Process:
    """Start a worker as a fresh process: the interpreter starts, and TensorFlow is imported."""
    return _spawn(system.python("bench.worker.main"), variables, folder, errors)


def _spawn(command: list[str], variables: Mapping[str, str], folder: str, errors: IO[bytes]) -> Process:
    return Spawned(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=environment(variables) | dict.fromkeys(TEMPORARY, folder),
        **own_session(),
    )


def spawn_in(env: Env | None) -> StartProcess:
    """Return a function that starts a worker as a fresh process in a Python environment.

    Args:
        env: The environment. None for devbench's own.
    """
    if env is None:
        return spawn
    command = system.python_of(env.python, "bench.worker.main", env.path or "")

    def spawn_elsewhere(variables: Mapping[str, str], folder: str, errors: IO[bytes]) -> Process:
        return _spawn(command, variables, folder, errors)

    return spawn_elsewhere


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a worker, except for its folder for temporary files."""
    own = {name: value for name, value in os.environ.items() if name not in SECRETS}
    return {**own, "PYTHONUNBUFFERED": "1", **variables}


def own_session() -> dict[str, Any]:
    """Return the arguments of `Popen` with which the signals of a terminal do not reach a process."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}
