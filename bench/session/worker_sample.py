"""One worker and the sample that it produces.

The session calls its steps one by one, so that it can interleave several workers: `set_up`, `warm_up`, then `run_round`
again and again, then `finish`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from bench.backends import capabilities
from bench.machine.telemetry import Meter
from bench.model.failure import Failure
from bench.model.phase import Activity
from bench.model.profile import Profile
from bench.model.recognition import Recognition
from bench.model.sample import ProcessSample, Series
from bench.model.spec import Spec
from bench.session.block_steps import steps_of_lead
from bench.session.blocks import Blocks
from bench.session.process import StartProcess, spawn
from bench.session.sample_events import OutOfSteps, SampleEvents
from bench.session.steady_state import stayed_settled
from bench.session.warm_up import count_last_blocks, warm_up
from bench.session.worker_process import WorkerEnded, WorkerProcess
from bench.session.worker_server import Forked
from bench.worker.protocol import (
    ClusterRun,
    Done,
    Finish,
    Latencies,
    Latency,
    ProfileRead,
    Ready,
    Recognized,
    ScriptRun,
    Trace,
)

VERIFY_SECONDS = 0.2
"""Seconds for which a suspended worker runs to notice that another worker of its spec is gone."""

LATENCY_STEPS = 100
LATENCY_SECONDS = 0.8


class WorkerSample:
    """Starts one worker, sends it orders, and collects its sample.

    Args:
        spec: What it measures.
        trial: Number of its trial.
        environment: Variables that must be set before TensorFlow is imported.
        timeout: Seconds of silence after which it counts as hung.
        report: Called with the phase and a note whenever the phase changes.
        full: Whether it runs the whole training instead of blocks.
        start_position: Position in which it starts within its trial, from 0. None if several start at once.
        load_before: Load average of the machine before the session began.
        gpu_busy_before: Share of the time in which its GPU was busy before the session began. None if not known.
        start: Starts its process.
        script: Takes an empty folder and returns how a script runs. None if the spec has no script.
        cluster: How it meets the other workers of the spec. None if the spec has no workers.

    Attributes:
        sample: What it measured so far.
        process: Its process.
        events: Its events.
        blocks: Its blocks.
        alive: Whether its process may still run.
        program_steps: Steps that a script runs until it ends by itself. None if that is not known.
    """

    def __init__(
        self,
        spec: Spec,
        trial: int,
        environment: dict[str, str],
        timeout: float,
        report: Callable[[Activity, str], None],
        full: bool = False,
        start_position: int | None = 0,
        load_before: float | None = None,
        gpu_busy_before: float | None = None,
        start: StartProcess = spawn,
        script: Callable[[Path], ScriptRun] | None = None,
        cluster: ClusterRun | None = None,
    ) -> None:
        self.spec = spec
        self.report = report
        report("starting", "")
        self.process = WorkerProcess(spec, environment, timeout, full, start, script, cluster)
        pid = self.process.process.pid
        self.sample = ProcessSample(
            trial=trial,
            start_position=start_position,
            forked=isinstance(self.process.process, Forked),
            pid=pid,
            started=self.process.started,
        )
        self.events = SampleEvents(self.process, self.sample, report)
        self.blocks = Blocks(self.process, self.events)
        self.meter = Meter(
            pid, capabilities(spec.backend).telemetry, load_before=load_before, gpu_busy_before=gpu_busy_before
        )
        self.alive = True
        self.program_steps: int | None = None
        self.metering = False

    def set_up(self) -> None:
        """Wait until the worker is set up and has run its first steps."""
        self.events.until(Ready)

    def recognize(self) -> Recognition:
        """Wait until it is known how the steps of a script are recognized."""
        self.report("recognition", "")
        recognized: Recognized = self.events.until(Recognized)
        self.events.until(Done)
        self.close()
        return recognized.recognition

    def warm_up(self) -> None:
        """Run blocks of each series until they settle, and find how many steps fill a block."""
        warm_up(self.blocks, self.sample.series, self.program_steps, self.report)
        self.meter.start()
        self.metering = True
        self.report("steady state", "")

    def run_round(self, position: int, lead: bool) -> float:
        """Run one block of each series, and return the seconds that were timed.

        Args:
            position: Position of the block in the trial.
            lead: Whether some untimed steps go first, because the worker was suspended.
        """
        timed = 0.0
        for series in self.sample.series:
            untimed = self._untimed_steps(series) if lead else 0
            try:
                block = self.blocks.run_timed(series, position, untimed)
            except OutOfSteps:
                count_last_blocks(self.sample.series)
                break
            series.blocks.append(block)
            timed += block.wall_seconds
        return timed

    def _untimed_steps(self, series: Series) -> int:
        """Return how many steps go first, untimed, because the worker was suspended."""
        return steps_of_lead(series, self.blocks.steps[series.name], capabilities(self.spec.backend).gpu)

    def run_blocks(self, blocks: int, position: int) -> None:
        """Run several blocks with one order, for a worker that is alone.

        Args:
            blocks: Number of blocks.
            position: Position of the first one.
        """
        (series,) = self.sample.series
        try:
            self.blocks.run_several(series, blocks, position)
        except OutOfSteps:
            count_last_blocks([series])

    def suspend(self) -> None:
        """Suspend the worker, and stop counting what happens on the machine."""
        if self.metering:
            self.meter.pause()
        self.process.suspend()

    def resume(self) -> None:
        """Let the worker continue."""
        if self.process.suspended:
            self.process.resume()
            if self.metering:
                self.meter.resume()

    def verify(self) -> None:
        """Let a suspended worker run for a moment, in which it notices whether other workers of its spec are gone.

        Raises:
            WorkerEnded: They are, or the worker itself has ended.
        """
        self.resume()
        time.sleep(VERIFY_SECONDS)
        if self.process.process.poll() is not None:
            self.events.until(Done)
        self.suspend()

    def finish(
        self,
        check_placement: bool,
        latency: bool,
        inspect: bool = False,
        stages: bool = False,
        waits: bool = True,
        brief: bool = False,
    ) -> None:
        """Run the latency pass and the diagnosis, then end the worker.

        Args:
            check_placement: Whether it runs the placement check.
            latency: Whether it runs the latency pass.
            inspect: Whether it looks into the program.
            stages: Whether it times the stages of the input pipeline.
            waits: Whether it measures how often short epochs wait at their ends.
            brief: Whether it leaves out what earlier workers have measured, as workers that started together always do.
        """
        brief = brief or self.sample.start_position is None
        self._stop_meter()
        for series in self.sample.series:
            if not stayed_settled([b.step_seconds for b in series.blocks]):
                series.settled = False
        if latency and not brief and not self.sample.ended:
            self.report("latency", "")
            (series,) = self.sample.series
            lead = self._untimed_steps(series)  # it was suspended
            self.process.order(Latency(steps=LATENCY_STEPS, seconds=LATENCY_SECONDS, lead=lead))
            with contextlib.suppress(OutOfSteps):
                self.events.until(Latencies)
        self.process.order(
            Finish(check_placement=check_placement, inspect=inspect, time_stages=stages, brief=brief, time_waits=waits)
        )
        self.events.until(Done)
        self.close()

    def profile(self, folder: Path, steps: int) -> Profile:
        """Trace steps into a folder, end the worker, and return the profile."""
        self._stop_meter()
        self.report("profile", "")
        self.process.order(Trace(folder=str(folder.resolve()), steps=steps))
        try:
            traced: ProfileRead = self.events.until(ProfileRead)
        except OutOfSteps:
            message = "the script ended before its steps were traced"
            raise WorkerEnded(Failure(kind="workload", message=message)) from None
        self.close()
        return traced.profile

    def train(self) -> None:
        """Wait for the whole training."""
        self.events.until(Done)
        self.close()

    def fail(self, failure: Failure) -> None:
        """Kill the worker. Its sample keeps what was measured, and says why it is incomplete."""
        self.sample.failure = failure
        self._stop_meter()
        self.process.kill()
        self.close()

    def close(self) -> None:
        """Let the worker end."""
        if self.alive:
            self.alive = False
            try:
                self._stop_meter()
            finally:
                self.process.close()

    def _stop_meter(self) -> None:
        if self.metering:
            self.metering = False
            self.sample.telemetry = self.meter.stop()
