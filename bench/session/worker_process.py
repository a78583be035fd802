"""The parent's end of a worker process: orders, events, suspending, and ending.

A thread puts the worker's lines into a queue, because Windows cannot wait on a pipe with a timeout. The worker's stderr
goes to a file, so a program that prints a lot is not blocked, and its output costs nothing while blocks are timed.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.machine import telemetry
from bench.machine.limits import Room
from bench.model.failure import Failure
from bench.model.phase import Activity
from bench.model.spec import Spec
from bench.session import worker_failure
from bench.session.memory_guard import MemoryGuard, out_of_memory
from bench.session.process import StartProcess, spawn
from bench.worker.protocol import EVENT, ClusterRun, Event, Failed, Go, Latency, PhaseStarted, ScriptRun, Start, Trace

SLOW_SECONDS = 3600.0
"""Seconds of silence allowed after a worker announced a slow phase, such as compiling kernels for a new GPU."""

PREPARATION_SECONDS = 600.0
"""Seconds of silence allowed while a script prepares its first step. A script without a step may look the same."""

PREPARATION: frozenset[Activity] = frozenset({"starting", "import", "build"})
"""What a script's worker does before the first step."""

LEAST_BUSY = 0.01
"""Share of one CPU that a script uses while it prepares its first step. One that uses less is hung."""

GRACE_SECONDS = 5.0
"""Seconds that a worker may take to end."""


class WorkerEnded(Exception):
    """A worker ended before it was done. `failure` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class OutOfTime(Exception):
    """A worker still runs at the last moment of its session."""


class WorkerProcess:
    """One worker process.

    Args:
        spec: What it measures.
        environment: Variables that it needs besides the parent's own.
        timeout: Seconds of silence after which it counts as hung.
        full: Whether it runs the whole training.
        start: Starts the process.
        script: Takes an empty folder and returns how a script runs. None if the spec has no script.
        cluster: How it meets the other workers of the spec. None if the spec has no workers.

    Raises:
        OSError: The system refuses to start it, or to make its temporary files.

    Attributes:
        process: The process itself.
        last_moment: Monotonic seconds until which events are waited for.
    """

    def __init__(
        self,
        spec: Spec,
        environment: dict[str, str],
        timeout: float,
        full: bool = False,
        start: StartProcess = spawn,
        script: Callable[[Path], ScriptRun] | None = None,
        cluster: ClusterRun | None = None,
    ) -> None:
        self.spec = spec
        self.timeout = timeout
        self.patience = timeout
        self._wait_seconds = cluster.wait_seconds if cluster is not None else 0.0
        self.last_moment = math.inf
        self.phase: Activity = "starting"
        self.started = datetime.now(timezone.utc)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this object
        self._scratch = tempfile.TemporaryDirectory(prefix="devbench-", ignore_cleanup_errors=True)
        with contextlib.ExitStack() as undo:
            undo.callback(self._errors.close)
            undo.callback(self._scratch.cleanup)  # an unfinished copy of a script's folder may be large
            self._script = script(Path(self._scratch.name)) if script is not None else None
            spawned = time.time()
            self.process = start(environment, self._scratch.name, self._errors)
            self._ps = self._process_of(self.process.pid)
            undo.callback(self.kill)
            self.suspended = False
            self._memory = MemoryGuard()
            self._lines: queue.Queue[bytes | None] = queue.Queue()
            self._reader = threading.Thread(target=self._read, daemon=True)
            try:
                self._reader.start()
            except RuntimeError as error:  # threads count towards the limit of processes
                raise OSError(errno.EAGAIN, str(error)) from None
            self.order(Start(spec=spec, spawned=spawned, full=full, script=self._script, cluster=cluster))
            undo.pop_all()

    @staticmethod
    def _process_of(pid: int) -> Any:
        """Return a process as psutil holds it. None if a server has reaped a forked worker that ended at once."""
        import psutil

        try:
            return psutil.Process(pid)
        except psutil.NoSuchProcess:
            return None

    def _read(self) -> None:
        with self.process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put(None)

    def order(self, message: Any) -> None:
        """Send an order. If the worker is gone, the next call of `event` notices."""
        if isinstance(message, Go | Latency | Trace):
            self.phase = "steps"  # the worker does not name this phase
            self.patience = self.timeout
        with contextlib.suppress(OSError):
            self.process.stdin.write(message.model_dump_json().encode() + b"\n")
            self.process.stdin.flush()

    def event(self) -> Event:
        """Return the next event.

        Raises:
            WorkerEnded: It failed, ended, was killed, or was silent for too long.
            OutOfTime: It still runs at the last moment.
        """
        line = self._next_line()
        if line is None or not line.endswith(b"\n"):  # a last line that is cut off says nothing
            raise WorkerEnded(self._end_gone())
        try:
            event = EVENT.validate_json(line)
        except ValidationError:
            self.kill()
            message = f"the worker sent an invalid event: {line[:80]!r}"
            lines = worker_failure.last_lines(self._stderr())
            raise WorkerEnded(Failure(kind="crashed", message=message, last_lines=lines)) from None
        if isinstance(event, PhaseStarted):
            self.phase = event.phase
            self.patience = max(self.patience, SLOW_SECONDS if event.slow else 0.0)
            if event.phase == "rendezvous":
                self.patience = self.timeout + self._wait_seconds
        if isinstance(event, Failed):
            self.kill()
            said_all = (
                event.failure.kind in ("workload", "data") or event.failure.exit_code is not None
            )  # its message tells the user what is wrong
            lines = [] if said_all else event.failure.last_lines or worker_failure.last_lines(self._stderr())
            raise WorkerEnded(event.failure.model_copy(update={"last_lines": lines}))
        return event

    def _next_line(self) -> bytes | None:
        """Wait for the next line of the worker. None if it closed its output."""
        began = time.monotonic()
        deadline = began + self.patience
        cpu_seconds = self._cpu_seconds() if self._is_preparing() else 0.0
        while True:
            if time.monotonic() >= self.last_moment:
                raise OutOfTime
            room, next_check = self._memory.check()
            if room is not None:
                raise WorkerEnded(self._end_out_of_memory(room))
            try:
                wait = min(deadline, self.last_moment) - time.monotonic()
                return self._lines.get(timeout=min(next_check, max(0.01, wait)))
            except queue.Empty:
                # A process that the worker started may hold its output open after its death.
                if self.process.poll() is not None and self._lines.empty():
                    raise WorkerEnded(self._end_gone()) from None
                if time.monotonic() >= deadline:
                    before, cpu_seconds = cpu_seconds, self._cpu_seconds()
                    busy = self._is_preparing() and cpu_seconds - before >= LEAST_BUSY * self.patience
                    if not busy or deadline >= began + PREPARATION_SECONDS:
                        raise WorkerEnded(self._end_hung(deadline - began)) from None
                    deadline = min(deadline + self.patience, began + max(PREPARATION_SECONDS, self.patience))

    def _is_preparing(self) -> bool:
        """Return whether it runs a script that has not reached its first step. It loads data, for example."""
        return self._script is not None and self.phase in PREPARATION

    def _cpu_seconds(self) -> float:
        """Return the CPU time of the worker and its descendants, including those that have ended."""
        return telemetry.cpu_seconds(self.process.pid) or 0.0

    def suspend(self) -> None:
        """Stop the process where it is, including its input threads."""
        self._signal("suspend")
        self.suspended = True

    def resume(self) -> None:
        """Let a suspended process continue."""
        if self.suspended:
            self._signal("resume")
            self.suspended = False

    def _signal(self, name: str) -> None:
        """Suspend or resume the worker and whatever it started: its process group, or on Windows its descendants.

        On Windows a virtual environment's `python.exe` only starts the real one and waits for it.
        """
        if sys.platform != "win32":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGSTOP if name == "suspend" else signal.SIGCONT)
            return
        import psutil

        for process in self._family():
            with contextlib.suppress(psutil.NoSuchProcess):
                getattr(process, name)()

    def _family(self) -> list[Any]:
        """Return the worker and all processes that it started."""
        import psutil

        if self._ps is None:
            return []
        try:
            return [*self._ps.children(recursive=True), self._ps]
        except psutil.NoSuchProcess:
            return []

    def rss(self) -> int:
        """Return the bytes of memory that the worker and its descendants hold. 0 if it is gone."""
        import psutil

        total = 0
        for process in self._family():
            with contextlib.suppress(psutil.NoSuchProcess):
                total += int(process.memory_info().rss)
        return total

    def kill(self) -> None:
        """Kill the worker and whatever it started."""
        import psutil

        for process in self._family():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if sys.platform != "win32":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)  # its own group, which includes orphans
        self.process.wait()

    def close(self) -> None:
        """Wait for a worker that is done to end; kill one that is not, also if a signal ends the wait."""
        try:
            self.resume()
            self._close_stdin()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=GRACE_SECONDS)
        finally:
            self.kill()  # what it started may outlive it
            self._close_stdin()
            self._reader.join(timeout=GRACE_SECONDS)
            self._errors.close()
            self._scratch.cleanup()

    def _close_stdin(self) -> None:
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def _stderr(self) -> str:
        """Return the end of the worker's stderr. The worker must be dead, since its position in the file moves too."""
        if self._errors.closed:
            return ""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 16_384))
        text = self._errors.read().decode(errors="replace")
        if self._script is None or not self._script.copy_root:
            return text
        return text.replace(self._script.copy_root, self._script.original_root)

    def _end_hung(self, seconds: float) -> Failure:
        if sys.platform != "win32":
            self.process.send_signal(signal.SIGUSR1)  # its fault handler writes where it is, and ends it
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=GRACE_SECONDS)
        self.kill()
        return worker_failure.hung(seconds, self.phase, self._stderr(), self.spec.file)

    def _end_out_of_memory(self, room: Room) -> Failure:
        size = self.rss()
        self.kill()
        return out_of_memory(room, size, self.phase, worker_failure.last_lines(self._stderr()))

    def _end_gone(self) -> Failure:
        try:
            code = self.process.wait(timeout=GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return worker_failure.closed_its_output(self.phase, self._stderr())
        self.kill()  # what it started may have outlived it
        return worker_failure.exited(code, self.phase, self._stderr(), self.spec.file)
