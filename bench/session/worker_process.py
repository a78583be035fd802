"""The parent's end of a worker: its process, its orders, its events, its turns, and how it ended.

A thread puts the worker's lines into a queue, since waiting on a pipe with a time-out is not possible on
Windows; what the worker writes to stderr goes to a file, so that a program which prints a megabyte blocks
nothing and costs nothing while blocks are timed.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.config.settings import SECRETS
from bench.machine import system
from bench.machine.limits import Room
from bench.model.result import Failure
from bench.model.spec import Spec
from bench.session.memory_guard import MemoryWatch, full
from bench.worker.protocol import EVENT, Event, Failed, Go, Latency, PhaseBegun, Start, Trace

LAST_LINES = 20

TEMPORARY = ("TMPDIR", "TEMP", "TMP")
"""Variables that name the folder for temporary files: each worker has its own, which goes with it, however it ends."""

_OWN_FOLDER = re.escape(str(Path(__file__).parent.parent / "worker"))
OURS = re.compile(
    rf'  File "({_OWN_FOLDER}|<frozen runpy>|[^"]*\brunpy\.py"|<string>", line 1 in )|Extension modules: '
)
"""Lines of Python's fault handler that say nothing about the user's program."""

SLOW_SECONDS = 3600.0
"""How long a worker may be silent that has said why it may be: kernels that are compiled for a new GPU."""

GRACE_SECONDS = 5.0
"""How long a worker that has said its last may take to end."""


class WorkerEnded(Exception):
    """A worker will say nothing more; `failure` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class WorkerProcess:
    """One worker process.

    Args:
        spec: what it is to measure.
        environment: variables it needs beside the parent's own.
        timeout: seconds of silence after which it counts as hung.
        full: whether it trains the whole program.
    """

    def __init__(self, spec: Spec, environment: dict[str, str], timeout: float, full: bool = False) -> None:
        self.spec = spec
        self.timeout = timeout
        self.patience = timeout
        self.phase = "start"
        self.started = datetime.now(timezone.utc)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this object
        self._scratch = tempfile.TemporaryDirectory(prefix="devbench-", ignore_cleanup_errors=True)
        flags: dict[str, Any] = {}
        if sys.platform == "win32":
            flags["creationflags"] = subprocess.CREATE_NEW_PROCESS_GROUP
        else:
            flags["start_new_session"] = True
        spawned = time.time()
        self.popen = subprocess.Popen(
            system.python("bench.worker.main"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={
                **_environment(),
                "PYTHONUNBUFFERED": "1",
                **dict.fromkeys(TEMPORARY, self._scratch.name),
                **environment,
            },
            **flags,
        )
        import psutil

        self._ps = psutil.Process(self.popen.pid)
        self.suspended = False
        self._memory = MemoryWatch()
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.order(Start(spec=spec, spawned=spawned, full=full))

    def _read(self) -> None:
        assert self.popen.stdout is not None
        with self.popen.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put(None)

    def order(self, message: Any) -> None:
        """Sends an order; a worker that is gone is noticed when its next event is asked for."""
        assert self.popen.stdin is not None
        if isinstance(message, Go | Latency | Trace):
            self.phase = "steps"  # only before and after them does the worker name its phases
            self.patience = self.timeout
        with contextlib.suppress(OSError):
            self.popen.stdin.write(message.model_dump_json().encode() + b"\n")
            self.popen.stdin.flush()

    def event(self) -> Event:
        """The next event.

        Raises:
            WorkerEnded: when it failed, ended, was killed, or was silent for too long.
        """
        deadline = time.monotonic() + self.patience
        while True:
            room, soon = self._memory.look()
            if room is not None:
                raise WorkerEnded(self._full(room))
            try:
                line = self._lines.get(timeout=min(soon, max(0.01, deadline - time.monotonic())))
                break
            except queue.Empty:
                # A process that the worker started may hold the line open after its death.
                if self.popen.poll() is not None and self._lines.empty():
                    raise WorkerEnded(self._ended()) from None
                if time.monotonic() >= deadline:
                    raise WorkerEnded(self._hung()) from None
        if line is None or not line.endswith(b"\n"):  # its last words, cut off, say nothing
            raise WorkerEnded(self._ended())
        try:
            event = EVENT.validate_json(line)
        except ValidationError:
            self.kill()
            message = f"the worker said something that is no event: {line[:80]!r}"
            raise WorkerEnded(Failure(kind="crashed", message=message, last_lines=self.last_lines())) from None
        if isinstance(event, PhaseBegun):
            self.phase = event.phase
            self.patience = max(self.patience, SLOW_SECONDS if event.slow else 0.0)
        if isinstance(event, Failed):
            self.kill()
            raise WorkerEnded(event.failure.model_copy(update={"last_lines": self.last_lines()}))
        return event

    def suspend(self) -> None:
        """Stops the process where it is, input threads and all."""
        self._signal("suspend")
        self.suspended = True

    def resume(self) -> None:
        """Lets a suspended process go on."""
        if self.suspended:
            self._signal("resume")
            self.suspended = False

    def _signal(self, name: str) -> None:
        """Suspends or resumes the worker and whatever it started: its group, or on Windows its family.

        There a virtual environment's `python.exe` only starts the real one and waits for it.
        """
        if sys.platform != "win32":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.popen.pid, signal.SIGSTOP if name == "suspend" else signal.SIGCONT)
            return
        import psutil

        for process in self._family():
            with contextlib.suppress(psutil.NoSuchProcess):
                getattr(process, name)()

    def _family(self) -> list[Any]:
        """The worker and all that it started."""
        import psutil

        try:
            return [*self._ps.children(recursive=True), self._ps]
        except psutil.NoSuchProcess:
            return []

    def rss(self) -> int:
        """Bytes of memory that the worker and what it started hold now; 0 when it is gone."""
        import psutil

        held = 0
        for process in self._family():
            with contextlib.suppress(psutil.NoSuchProcess):
                held += int(process.memory_info().rss)
        return held

    def kill(self) -> None:
        """Ends the worker and whatever it started, now."""
        import psutil

        for process in self._family():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if sys.platform != "win32":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.popen.pid, signal.SIGKILL)  # it leads a group of its own, orphans included
        self.popen.wait()

    def close(self) -> None:
        """Waits for a worker that is done to end; ends one that is not."""
        assert self.popen.stdin is not None
        self.resume()
        with contextlib.suppress(OSError):
            self.popen.stdin.close()
        try:
            self.popen.wait(timeout=GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._reader.join(timeout=GRACE_SECONDS)
        self._errors.close()
        self._scratch.cleanup()

    def last_lines(self) -> list[str]:
        """The end of what the worker wrote to stderr; of a dead one, since its place in that file moves with ours."""
        lines = self._tail().replace("\r", "\n").splitlines()
        return [line[-500:] for line in lines if line.strip() and not OURS.match(line)][-LAST_LINES:]

    def _tail(self) -> str:
        if self._errors.closed:
            return ""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 16_384))
        return self._errors.read().decode(errors="replace")

    def _own_line(self) -> str:
        """Where in the user's file it ended, if Python's fault handler wrote that; to be put behind a word."""
        file = self.spec.file or ""
        stack = self._tail().rpartition("(most recent call first)")[2]
        found = re.search(rf'File "{re.escape(file)}", (line \d+) in ', stack)
        return f" ({Path(file).name}, {found.group(1)})" if found else ""

    def _hung(self) -> Failure:
        if sys.platform != "win32":
            self.popen.send_signal(signal.SIGUSR1)  # has it write where it is, and end
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(timeout=GRACE_SECONDS)
        self.kill()
        return Failure(
            kind="hung",
            message=f"the worker was silent for {self.patience:g} s{self._own_line()} and was ended",
            hint="If this phase may take so long, give it more with --worker-timeout 10m.",
            phase=self.phase,
            last_lines=self.last_lines(),
        )

    def _full(self, room: Room) -> Failure:
        held = self.rss()
        self.kill()
        return full(room, held, self.phase, self.last_lines())

    def _ended(self) -> Failure:
        try:
            code = self.popen.wait(timeout=GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            message, hint = "the worker lives, but closed its line to devbench", "Let it close only what it opened."
            lines = self.last_lines()
            return Failure(kind="crashed", message=message, hint=hint, phase=self.phase, last_lines=lines)
        self.kill()  # what it started, if that outlived it
        name = None
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"signal {-code}"
        kind: Any = "killed" if name in ("SIGKILL", "SIGTERM") else "crashed"
        hint = "Its last lines are below. See whether the program crashes outside of devbench too."
        if name == "SIGKILL":
            hint = "If nobody killed it, memory ran out: try a smaller batch, or look at the kernel's log for 'oom'."
        what = f"was ended by {name}" if name else f"ended with exit code {code}"
        return Failure(
            kind=kind,
            message=f"the worker {what}{self._own_line()}",
            hint=hint,
            exit_code=code if code >= 0 else None,
            signal=name,
            phase=self.phase,
            last_lines=self.last_lines(),
        )


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in SECRETS}
