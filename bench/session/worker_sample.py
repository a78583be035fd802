"""One worker and the sample that it produces.

The session calls its steps one by one, so that it can interleave several workers: `set_up`, `warm_up`, then `run_round`
again and again, then `finish`.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.backends import capabilities
from bench.machine.telemetry import Meter
from bench.model.device import Device
from bench.model.failure import Failure
from bench.model.framework import Framework
from bench.model.phase import Activity
from bench.model.profile import Profile
from bench.model.recognition import Recognition
from bench.model.sample import Block, ProcessSample, Series
from bench.model.spec import Spec
from bench.session.block_steps import steps_of_block, steps_of_lead
from bench.session.process import StartProcess, spawn
from bench.session.sample_events import add, block_of
from bench.session.steady_state import WINDOW, is_settled, stayed_settled
from bench.session.worker_process import WorkerEnded, WorkerProcess
from bench.session.worker_server import Forked
from bench.worker.protocol import (
    BLOCK_SECONDS,
    BlockTimed,
    Done,
    EnvironmentRead,
    Event,
    Finish,
    Go,
    Latencies,
    Latency,
    PhaseStarted,
    ProfileRead,
    ProgramEnded,
    Ready,
    Recognized,
    ScriptRun,
    Trace,
)

WARMUP_BLOCKS = 40
WARMUP_SECONDS = 10.0
WARMUP_SHARE = 1 / 4
"""Share of the steps of a script that the warm-up may take, if it is known how many it has."""

SHORT_BLOCK = 0.75 * BLOCK_SECONDS
"""If the first timed block is shorter, the warm-up was slower than the steady state, and blocks get more steps."""

LATENCY_STEPS = 100
LATENCY_SECONDS = 0.8


class OutOfSteps(Exception):
    """A script ended by itself, so there are no more blocks."""


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
        script: From an empty folder to how a script runs. None if the spec is no script's.

    Attributes:
        sample: What it measured so far.
        process: Its process.
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
    ) -> None:
        self.spec = spec
        self.report = report
        report("starting", "")
        self.process = WorkerProcess(spec, environment, timeout, full, start, script)
        pid = self.process.process.pid
        self.sample = ProcessSample(
            trial=trial,
            start_position=start_position,
            forked=isinstance(self.process.process, Forked),
            pid=pid,
            started=self.process.started,
        )
        self.framework: Framework | None = None
        self.device: Device | None = None
        self.steps: dict[str, int] = {}
        self.meter = Meter(
            pid, capabilities(spec.backend).telemetry, load_before=load_before, gpu_busy_before=gpu_busy_before
        )
        self.alive = True
        self.program_steps: int | None = None
        self.metering = False
        self._slow = ""  # why it may be silent for minutes until its first steps are done

    def series(self, name: str) -> Series:
        """Return the series of this name."""
        return next(series for series in self.sample.series if series.name == name)

    def until(self, kind: type[Event]) -> Any:
        """Collect events until one of this kind comes, and return it."""
        if self.sample.ended and kind in (BlockTimed, Latencies, ProfileRead):
            raise OutOfSteps
        while True:
            event = self.process.event()
            self._take(event)
            if isinstance(event, kind):
                return event
            if isinstance(event, ProgramEnded):
                self.sample.ended = True
                if kind is not Done:
                    raise OutOfSteps

    def _take(self, event: Event) -> None:
        if isinstance(event, PhaseStarted):
            self._slow = event.note if event.slow else self._slow
            self.report(event.phase, event.note or self._slow)
        elif isinstance(event, EnvironmentRead):
            self.framework, self.device = event.framework, event.device
        elif isinstance(event, Ready):
            self._slow = ""
            self.sample.series = [
                Series(name=name, bytes=event.bytes.get(name), floor=event.floors.get(name)) for name in event.series
            ]
        else:
            add(event, self.sample)

    def set_up(self) -> None:
        """Wait for the phases up to the first steps."""
        self.until(Ready)

    def recognize(self) -> Recognition:
        """Wait until it is known how the steps of a script are recognized."""
        self.report("recognition", "")
        recognized: Recognized = self.until(Recognized)
        self.until(Done)
        self.close()
        return recognized.recognition

    def warm_up(self) -> None:
        """Run blocks of each series until they settle, and find how many steps fill a block.

        If a script ends meanwhile, the later half of its blocks counts as the steady state.
        """
        try:
            self._warm_up()
        except OutOfSteps:
            for series in self.sample.series:
                half = len(series.warmup) // 2
                last = [b.model_copy(update={"position": n}) for n, b in enumerate(series.warmup[half:])]
                series.warmup, series.blocks = series.warmup[:half], last
        self.meter.start()
        self.metering = True
        self.report("steady state", "")

    def _warm_up(self) -> None:
        for series in self.sample.series:
            self.report("warm_up", series.name if len(self.sample.series) > 1 else "")
            self._calibrate(series)
            if len(self.sample.series) > 1:
                continue
            while not is_settled([b.step_seconds for b in series.warmup]):
                if len(series.warmup) >= WARMUP_BLOCKS or sum(b.wall_seconds for b in series.warmup) > WARMUP_SECONDS:
                    series.settled = len(series.warmup) < 2 * WINDOW
                    break
                if self.program_steps and sum(b.steps for b in series.warmup) > WARMUP_SHARE * self.program_steps:
                    break
                series.warmup.append(self._block(series.name, -1))
            typical = statistics.median(block.step_seconds for block in series.warmup[-WINDOW:])
            self.steps[series.name] = steps_of_block(series, typical)

    def _calibrate(self, series: Series) -> None:
        self.process.order(Go(series=series.name))
        longest, position = 0, len(series.warmup)
        while True:
            timed: BlockTimed = self.until(BlockTimed)
            block = block_of(timed, -1)
            series.warmup[position:] = [block]
            if block.wall_seconds >= BLOCK_SECONDS or block.steps <= longest:  # the program has no more steps
                break
            longest = timed.steps
        self.steps[series.name] = timed.steps

    def _timed_block(self, series: Series, position: int, lead: int = 0) -> Block:
        """Run a block that counts. If the first one is short, it counts as warm-up, and a longer one follows."""
        ordered = self.steps[series.name]
        block = self._block(series.name, position, lead)
        if series.blocks or block.wall_seconds >= SHORT_BLOCK or block.steps < ordered:
            return block
        series.warmup.append(block.model_copy(update={"position": -1}))
        self.steps[series.name] = steps_of_block(series, block.step_seconds)
        return self._block(series.name, position)

    def _block(self, name: str, position: int, lead: int = 0) -> Block:
        self.process.order(Go(series=name, steps=self.steps[name], lead=lead))
        return self._timed(name, position)

    def _timed(self, name: str, position: int) -> Block:
        timed: BlockTimed = self.until(BlockTimed)
        self.steps[name] = min(self.steps[name], timed.steps)  # the program may end before a block is full
        return block_of(timed, position)

    def run_round(self, position: int, lead: bool) -> float:
        """Run one block of each series, and return the seconds that were timed.

        Args:
            position: Position of the block in the trial.
            lead: Whether some untimed steps go first, because the worker was suspended.
        """
        timed = 0.0
        for series in self.sample.series:
            untimed = steps_of_lead(series, self.steps[series.name], capabilities(self.spec.backend).gpu) if lead else 0
            try:
                block = self._timed_block(series, position, untimed)
            except OutOfSteps:
                break
            series.blocks.append(block)
            timed += block.wall_seconds
        return timed

    def run_blocks(self, blocks: int, position: int) -> None:
        """Run several blocks with one order, for a worker that is alone.

        Args:
            blocks: Number of blocks.
            position: Position of the first one.
        """
        with contextlib.suppress(OutOfSteps):
            self._run_blocks(blocks, position)

    def _run_blocks(self, blocks: int, position: int) -> None:
        (series,) = self.sample.series
        done = 0
        if not series.blocks:
            series.blocks.append(self._timed_block(series, position))
            done = 1
        if blocks > done:
            self.process.order(Go(series=series.name, steps=self.steps[series.name], blocks=blocks - done))
        for index in range(done, blocks):
            series.blocks.append(self._timed(series.name, position + index))

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
            waits: Whether it measures how often short epochs wait for their ends.
            brief: Whether it only measured steps. Workers that started together only do so.
        """
        brief = brief or self.sample.start_position is None
        self._stop_meter()
        for series in self.sample.series:
            if not stayed_settled([b.step_seconds for b in series.blocks]):
                series.settled = False
        if latency and not brief and not self.sample.ended:
            self.report("latency", "")
            self.process.order(Latency(steps=LATENCY_STEPS, seconds=LATENCY_SECONDS))
            with contextlib.suppress(OutOfSteps):
                self.until(Latencies)
        self.process.order(
            Finish(check_placement=check_placement, inspect=inspect, time_stages=stages, brief=brief, time_waits=waits)
        )
        self.until(Done)
        self.close()

    def profile(self, folder: Path, steps: int) -> Profile:
        """Trace steps into a folder, end the worker, and return the profile."""
        self._stop_meter()
        self.report("profile", "")
        self.process.order(Trace(folder=str(folder.resolve()), steps=steps))
        try:
            traced: ProfileRead = self.until(ProfileRead)
        except OutOfSteps:
            message = "the script ended before its steps were traced"
            raise WorkerEnded(Failure(kind="workload", message=message)) from None
        self.close()
        return traced.profile

    def train(self) -> None:
        """Wait for the whole training."""
        self.until(Done)
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
            self._stop_meter()
            self.process.close()

    def _stop_meter(self) -> None:
        if self.metering:
            self.metering = False
            self.sample.telemetry = self.meter.stop()
