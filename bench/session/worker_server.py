"""The parent's end of a worker server, and of the workers that it forks (`bench.worker.server`)."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import IO

from bench.machine import system
from bench.session.process import TEMPORARY, environment, own_session
from bench.session.worker_failure import last_lines

FORK_SECONDS = 30.0
"""Seconds in which a server must answer a request. A fork takes milliseconds."""


class ServerEnded(Exception):
    """A server ended, or does not answer. The message says how."""


class Forked:
    """A worker that a server forked. It has the interface of `bench.session.process.Process`.

    Args:
        pid: Its process id.
        stdin: Takes orders.
        stdout: Yields events.
        report: Yields its exit code once it has ended, or nothing if the server ended and took it along.
    """

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes], report: IO[bytes]) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self._report = report
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or the negative number of the signal that killed it. None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0.0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends and return its exit code.

        Raises:
            subprocess.TimeoutExpired: It still runs after `timeout` seconds.
        """
        if sys.platform == "win32":
            raise NotImplementedError
        if self._code is None:
            if not select.select([self._report], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked worker", timeout or 0.0)
            with self._report:
                self._code = int(self._report.read() or -signal.SIGKILL)
        return self._code

    def send_signal(self, sig: int) -> None:
        """Send it a signal. Do nothing if it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sig)


class WorkerServer:
    """A worker server for one set of environment variables. It starts with this object; `wait` until it can fork.

    Args:
        variables: Environment variables that its workers need besides the parent's own.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this object
        self._folder = tempfile.TemporaryDirectory(prefix="devbench-", ignore_cleanup_errors=True)
        self._connection, theirs = _socket_pair()
        self._ready = False
        self._workers: list[Forked] = []
        with theirs:
            self._popen = subprocess.Popen(
                [*system.python("bench.worker.server"), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                env=environment(variables) | dict.fromkeys(TEMPORARY, self._folder.name),
                pass_fds=[theirs.fileno()],
                **own_session(),
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._popen.pid

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self._popen.poll() is not None

    @property
    def idle(self) -> bool:
        """Whether all workers that it forked have ended."""
        self._workers = [worker for worker in self._workers if worker.poll() is None]
        return not self._workers

    def wait(self, timeout: float) -> None:
        """Wait until it has imported TensorFlow.

        Raises:
            ServerEnded: It ended, or is not ready after `timeout` seconds.
        """
        if self._ready:
            return
        if not select.select([self._connection], [], [], timeout)[0]:
            raise ServerEnded(f"it was silent for {timeout:.0f} s")
        self._ready = self._connection.recv(16) != b""
        if not self._ready:
            raise ServerEnded(self._end())

    def fork(self, folder: str, errors: IO[bytes]) -> Forked:
        """Fork a worker.

        Args:
            folder: Its folder for temporary files.
            errors: Takes its stderr.

        Raises:
            ServerEnded: The server is gone or does not answer.
            OSError: The system has no room for another process. Its number is EAGAIN.
        """
        if sys.platform == "win32":
            raise NotImplementedError
        (in_read, in_write), (out_read, out_write), (report_read, report_write) = os.pipe(), os.pipe(), os.pipe()
        report = os.fdopen(report_read, "rb", buffering=0)
        stdin, stdout = os.fdopen(in_write, "wb"), os.fdopen(out_read, "rb")
        try:
            request = json.dumps(dict.fromkeys(TEMPORARY, folder)).encode()
            descriptors = [in_read, out_write, errors.fileno(), report_write]
            with contextlib.suppress(OSError):  # if the server is gone, there is no answer
                socket.send_fds(self._connection, [request], descriptors)
        finally:
            for descriptor in (in_read, out_write, report_write):
                os.close(descriptor)
        answer = report.readline() if select.select([report], [], [], FORK_SECONDS)[0] else b""
        if answer.strip().isdigit():
            worker = Forked(int(answer), stdin, stdout, report)
            self._workers.append(worker)
            return worker
        for pipe in (stdin, stdout, report):
            pipe.close()
        if not answer:
            raise ServerEnded(self._end())
        raise OSError(errno.EAGAIN, answer.decode().strip())

    def _end(self) -> str:
        """Return how it ended, with the last line that it wrote."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._popen.wait(timeout=1.0)
            self._errors.seek(0)
            lines = last_lines(self._errors.read().decode(errors="replace"))
            return f"it ended with exit code {code}" + (f": {lines[-1]}" if lines else "")
        return "it does not answer"

    def close(self) -> None:
        """End it, with all workers that it forked."""
        self._connection.close()
        self._popen.kill()
        self._popen.wait()
        self._errors.close()
        self._folder.cleanup()


def _socket_pair() -> tuple[socket.socket, socket.socket]:
    """Return two connected sockets that keep the boundaries of messages."""
    if sys.platform == "win32":
        raise NotImplementedError
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
