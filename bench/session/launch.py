"""The launcher starts workers, guards them, and ends those that still run when the session ends.

In the first trials, workers start one after another, so that their starts are measured. In later trials they start at
once: TensorFlow's import and Keras' preparations mostly use one core. A worker that is ready is suspended. Workers that
do not fit into memory together are measured one by one.

If there are worker servers, a worker whose start is not reported is forked from one, where the backend allows it
(`bench.session.worker_servers`).
"""

from __future__ import annotations

import errno
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from bench.backends import capabilities
from bench.errors import DISK_FULL, DevbenchError
from bench.machine import environment, gpu
from bench.machine.limits import thread_count
from bench.model.failure import Failure
from bench.model.phase import Activity
from bench.model.result import Result
from bench.model.spec import Spec
from bench.session.memory_fit import RoomCheck, fits, may_start_together, peak
from bench.session.process import StartProcess, spawn, spawn_in
from bench.session.progress import ProgressReporter
from bench.session.script_folder import ScriptFolder
from bench.session.starting import can_fork, may_fork, variables_of
from bench.session.worker_process import WorkerEnded
from bench.session.worker_sample import WorkerSample
from bench.session.worker_servers import SERVER_BYTES, WorkerServers
from bench.signals import uninterrupted
from bench.worker.protocol import ClusterRun, ScriptRun
from bench.worker.rendezvous.losing import of_cluster

TrialMember = tuple[Result, WorkerSample]
"""A result and the worker that measures for it."""


class ClusterLost(Exception):
    """Another host is gone. `failure` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@contextmanager
def _system_errors() -> Iterator[None]:
    """Say why the system refuses to start a worker.

    Raises:
        DevbenchError: The disk with the temporary files is full, a limit of processes is reached, and so on.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in DISK_FULL:
            hint = "Free some space, or set TMPDIR to another folder."
            raise DevbenchError(f"cannot write temporary files: {reason}", hint) from error
        hint = ""
        if error.errno in (errno.EAGAIN, errno.ENOMEM):
            hint = "Raise the limit of processes (`ulimit -u`, or --pids-limit of a container), or free memory."
        raise DevbenchError(f"cannot start a worker: {error if error.filename else reason}", hint) from error


class Launcher:
    """Owns the workers of a session from their start to their end.

    Args:
        timeout: Seconds of silence after which a worker counts as hung.
        progress: Receives the phases of each worker.
        save: Writes a result whose worker failed.
        last_moment: Monotonic seconds at which workers that still run are ended. None if they are never ended.
        servers: The worker servers from which workers are forked. None if all workers are fresh.
        folders: The folder of each script, by the key of its spec.
        is_cold: Returns whether a worker must be fresh, by whether it starts alone.
        cluster: Returns how the workers of a spec meet. None if no spec has workers.
        inspect: Whether workers of scripts also look into the steps.
    """

    def __init__(
        self,
        timeout: float,
        progress: ProgressReporter,
        save: Callable[[Result], object],
        last_moment: float | None = None,
        servers: WorkerServers | None = None,
        folders: Mapping[str, ScriptFolder] = MappingProxyType({}),
        is_cold: Callable[[bool], bool] = lambda alone: True,
        cluster: Callable[[Spec], ClusterRun] | None = None,
        inspect: bool = False,
    ) -> None:
        self._cluster = cluster
        self._inspect = inspect
        self._servers = servers
        self._folders = folders
        self._is_cold = is_cold
        self._last_moment = math.inf if last_moment is None else last_moment
        self._timeout = timeout
        self._progress = progress
        self._save = save
        self._load = environment.load_average()
        self._busy: dict[str, float | None] = {}  # utilization of each backend's GPU before its first worker
        self._workers: list[WorkerSample] = []

    def trial(self, results: Sequence[Result], together: bool) -> Iterator[list[TrialMember]]:
        """Start one worker for each result and yield the groups that are to be interleaved.

        Args:
            results: In the order in which their workers start.
            together: Whether the workers start at once.

        Yields:
            Workers that have warmed up. Several are suspended; a single one runs. Workers that failed are left out.
            There is one group, unless memory does not hold all workers at once. Then each worker is a group, and ends
            before the next one starts.
        """
        if together and may_start_together(results):
            yield self._start_together(results)
        else:
            yield from self._start_separately(results)

    def start(
        self,
        result: Result,
        start_position: int | None = 0,
        full: bool = False,
        scout_seconds: float = 0.0,
    ) -> WorkerSample:
        """Start a worker; its sample becomes the last of the result's samples.

        Args:
            result: What the worker measures.
            start_position: Position in which it starts within its trial, from 0. None if several start at once.
            full: Whether it runs the whole training instead of blocks. Its worker is fresh.
            scout_seconds: Seconds for which a worker finds out what the steps of a script are, instead of timing them.

        Raises:
            DevbenchError: The system refuses to start it.
        """
        spec = result.spec
        variables = variables_of(spec)
        if spec.backend not in self._busy:  # later, the session's own workers use the GPU
            sampler = capabilities(spec.backend).telemetry
            self._busy[spec.backend] = gpu.utilization(sampler, os.environ | variables)

        def report(phase: Activity, note: str) -> None:
            self._progress.report(result, phase, note)

        server = None if full else self._server(result, variables, alone=start_position is not None)
        with _system_errors():
            start = self._ready(server, variables, report) if server else spawn_in(spec.env)
        with _system_errors(), uninterrupted():  # `abandon` must know every worker that was started
            worker = WorkerSample(
                spec,
                self._progress.trial,
                variables,
                self._timeout,
                report,
                full,
                start_position,
                self._load,
                self._busy[spec.backend],
                start,
                self._script_run(result, scout_seconds) if spec.script is not None else None,
                self._cluster(spec) if self._cluster is not None and spec.workers is not None else None,
            )
            worker.process.last_moment = self._last_moment
            if result.recognition is not None and result.recognition.ended and spec.loop == "as-written":
                worker.program_steps = result.recognition.chosen.steps
            self._workers = [*self._alive(), worker]
            result.samples.append(worker.sample)
        if server and not worker.sample.forked:
            result.add_note(f"Workers were not forked, so each imported TensorFlow: {server.problem}.")
        if self._servers is not None and can_fork(spec) and result.recognition and result.recognition.variables:
            changed = ", ".join(result.recognition.variables)
            result.add_note(f"Workers were not forked, because {changed} changes before TensorFlow is imported.")
        return worker

    def _script_run(self, result: Result, scout_seconds: float) -> Callable[[Path], ScriptRun]:
        """Return a function that takes an empty folder and returns how a worker runs the script of a result."""
        folder = self._folders[result.key]

        def prepare(scratch: Path) -> ScriptRun:
            return ScriptRun(
                **folder.place(scratch),
                target=None if scout_seconds or result.recognition is None else result.recognition.chosen,
                scout_seconds=scout_seconds,
                inspect=self._inspect,
                check_placement=result.placement is None,
                timeout=self._timeout,
            )

        return prepare

    def _server(self, result: Result, variables: Mapping[str, str], alone: bool) -> WorkerServers | None:
        """Return the servers from which a worker is forked. None if it is fresh.

        A server that does not run yet must fit into memory beside the largest known worker.
        """
        servers = self._servers
        if servers is None or not may_fork(result) or self._is_cold(alone):
            return None
        return servers if servers.has(variables) or fits(SERVER_BYTES + peak(result)) else None

    def _ready(
        self, servers: WorkerServers, variables: Mapping[str, str], report: Callable[[Activity, str], None]
    ) -> StartProcess:
        """Wait until a server can fork. Return how a worker starts: it is fresh if the server cannot start."""
        report("starting", "" if servers.has(variables) else "import of TensorFlow, for several workers")
        seconds = min(self._timeout, self._last_moment - time.monotonic())
        return servers.fork if servers.wait(variables, max(0.0, seconds)) else spawn

    @contextmanager
    def guard(self, result: Result, worker: WorkerSample, timed: bool = False) -> Iterator[None]:
        """Let only the worker's own result fail if the worker fails.

        Args:
            result: The result.
            worker: The worker.
            timed: Whether its steps are timed. The result then keeps them, even if the worker hangs.

        Raises:
            ClusterLost: Another host is gone, without which the remaining results would wait in vain.
        """
        try:
            yield
        except WorkerEnded as ended:
            if timed and ended.failure.kind == "hung":
                worker.fail(ended.failure.model_copy(update={"kind": "interrupted"}))
                return
            worker.fail(ended.failure)
            result.failure = ended.failure
            self._save(result)
            elsewhere = self._cluster is not None and bool(self._cluster(result.spec).hosts)
            if elsewhere and of_cluster(ended.failure):
                raise ClusterLost(ended.failure) from None

    def abandon(self, message: str = "the run was interrupted") -> None:
        """End every worker that is still alive, suspended or not.

        Args:
            message: Why.
        """
        for worker in self._alive():
            worker.fail(Failure(kind="interrupted", message=message, phase=worker.process.phase))
        self._workers = []

    def _alive(self) -> list[WorkerSample]:
        return [worker for worker in self._workers if worker.alive]

    def _start_separately(self, results: Sequence[Result]) -> Iterator[list[TrialMember]]:
        members: list[TrialMember] = []
        room = None  # set while the workers are kept beside each other
        if len(results) > 1:
            room = RoomCheck([(result.spec, variables_of(result.spec)) for result in results])
        for position, result in enumerate(results):
            members = [member for member in members if self._is_whole(*member)]
            worker = self.start(result, position)
            with self.guard(result, worker):
                worker.set_up()
                worker.warm_up()
            if worker.sample.failure is not None:
                continue
            if room is not None and not room.holds_rest(position, worker.process.rss()):
                room = None
                for other in results:
                    other.interleaved = False
                for member in members:  # the suspended workers are measured before another one starts
                    yield [member]
                members = []
            if room is not None:
                worker.suspend()
                members.append((result, worker))
            else:
                yield [(result, worker)]
        if members:
            yield members

    def _is_whole(self, result: Result, worker: WorkerSample) -> bool:
        """Return whether no other worker of its spec is gone, which a suspended worker only notices while it runs."""
        if result.spec.workers is not None and result.spec.workers.count > 1:
            with self.guard(result, worker):
                worker.verify()
        return worker.sample.failure is None

    def _start_together(self, results: Sequence[Result]) -> list[TrialMember]:
        """Set up as many workers at once as there are CPUs. Then let each warm up alone."""
        members: list[TrialMember] = []
        cpus = thread_count()
        for result in results:
            variables = variables_of(result.spec)
            if server := self._server(result, variables, alone=False):
                with _system_errors():
                    server.prepare(variables)  # several servers import at once
        for start in range(0, len(results), cpus):
            chunk = [(result, self.start(result, None)) for result in results[start : start + cpus]]
            for result, worker in chunk:
                with self.guard(result, worker):
                    worker.set_up()
                    worker.suspend()
            members += chunk
        for result, worker in members:
            if worker.sample.failure is None:
                with self.guard(result, worker):
                    worker.resume()
                    worker.warm_up()
                    worker.suspend()
        return [(result, worker) for result, worker in members if worker.sample.failure is None]
