"""One process sample, from the worker's start to its end, as the session conducts it.

`Sampling` holds a worker and what it has said so far. Its steps are called one by one, so that a session can
let several workers take turns: `warm_up`, then `blocks` again and again, then `finish`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.machine.telemetry import Meter
from bench.model.result import Block, Failure, ProcessSample, Profile, Series
from bench.model.spec import Spec
from bench.session.steady_state import WINDOW, settled, stayed
from bench.session.worker_process import WorkerProcess
from bench.worker.protocol import (
    BLOCK_SECONDS,
    Answer,
    Done,
    EnvironmentRead,
    Event,
    FactsRead,
    Finish,
    Go,
    Latencies,
    Latency,
    Note,
    PhaseBegun,
    PhaseDone,
    Proof,
    Ready,
    Timed,
    Trace,
    Traced,
    Trained,
)

WARMUP_BLOCKS = 40
WARMUP_SECONDS = 10.0
LATENCY_STEPS = 100
LATENCY_SECONDS = 0.8


class WorkerSample:
    """Conducts one worker and gathers its sample.

    Args:
        spec: what it measures.
        trial: number of the trial it belongs to.
        environment: variables the backend wants set before TensorFlow is imported.
        timeout: seconds of silence that count as hung.
        tell: called with the phase and a note whenever the phase changes.
        full: train the whole program instead.
        start_position: position in which it is started within its trial; none where several start at once.
        load_before: the machine's load average before anything of ours ran.
    """

    def __init__(
        self,
        spec: Spec,
        trial: int,
        environment: dict[str, str],
        timeout: float,
        tell: Callable[[str, str], None],
        full: bool = False,
        start_position: int | None = 0,
        load_before: float | None = None,
    ) -> None:
        self.spec = spec
        self.tell = tell
        tell("starting", "")
        self.process = WorkerProcess(spec, environment, timeout, full)
        pid = self.process.popen.pid
        self.sample = ProcessSample(trial=trial, start_position=start_position, pid=pid, started=self.process.started)
        self.environment: dict[str, Any] = {}
        self.steps: dict[str, int] = {}
        self.meter = Meter(pid, spec.backend, load_before=load_before)
        self.alive = True
        self.metering = False
        self.slow = ""  # why it may be silent for minutes, in whichever phase until its first steps are done

    def series(self, name: str) -> Series:
        """The series of this name."""
        return next(x for x in self.sample.series if x.name == name)

    def until(self, kind: type[Event]) -> Any:
        """Takes events in until one of this kind comes, which is returned."""
        while True:
            event = self.process.event()
            self._take(event)
            if isinstance(event, kind):
                return event

    def _take(self, event: Event) -> None:
        if isinstance(event, PhaseBegun):
            self.slow = event.note if event.slow else self.slow
            self.tell(event.phase, event.note or self.slow)
        elif isinstance(event, EnvironmentRead):
            self.environment = {"framework": event.framework, "device": event.device}
        elif isinstance(event, Ready):
            self.slow = ""
            self.sample.series = [
                Series(name=name, bytes=event.bytes.get(name), floor=event.floors.get(name)) for name in event.series
            ]
        else:
            _add(event, self.sample)

    def set_up(self) -> None:
        """Phases up to the first steps."""
        self.until(Ready)

    def warm_up(self) -> None:
        """Blocks of each series until they settle; the steps that fill a block are found on the way."""
        for series in self.sample.series:
            self.tell("warm-up", series.name if len(self.sample.series) > 1 else "")
            self._calibrate(series)
            if len(self.sample.series) > 1:
                continue
            while not settled([b.step_seconds for b in series.warmup]):
                if len(series.warmup) >= WARMUP_BLOCKS or sum(b.seconds for b in series.warmup) > WARMUP_SECONDS:
                    series.settled = len(series.warmup) < 2 * WINDOW
                    break
                series.warmup.append(self._block(series.name, -1))
            self._fit_block(series)
        self.meter.start()
        self.metering = True
        self.tell("steady state", "")

    def _calibrate(self, series: Series) -> None:
        self.process.order(Go(series=series.name))
        longest = 0
        while True:
            timed: Timed = self.until(Timed)
            if timed.seconds >= BLOCK_SECONDS or timed.steps <= longest:  # the program is no longer than that
                break
            longest = timed.steps
        series.warmup.append(_block_of(timed, -1))
        self.steps[series.name] = timed.steps

    def _fit_block(self, series: Series) -> None:
        """Steps that fill a block, now that they are as fast as they get."""
        usual = statistics.median(b.step_seconds for b in series.warmup[-WINDOW:])
        self.steps[series.name] = max(1, math.ceil(1.1 * BLOCK_SECONDS / usual))

    def _block(self, name: str, turn: int, lead: int = 0) -> Block:
        self.process.order(Go(series=name, steps=self.steps[name], lead=lead))
        return self._timed(name, turn)

    def _timed(self, name: str, turn: int) -> Block:
        timed: Timed = self.until(Timed)
        self.steps[name] = min(self.steps[name], timed.steps)  # the program may end before a block is full
        return _block_of(timed, turn)

    def turn(self, turn: int, lead: bool) -> float:
        """One block of each series; returns the seconds that were timed.

        Args:
            turn: position in the trial's order of turns.
            lead: whether the worker was suspended before, so that some untimed steps go first.
        """
        timed = 0.0
        for series in self.sample.series:
            block = self._block(series.name, turn, math.ceil(self.steps[series.name] / 8) if lead else 0)
            series.blocks.append(block)
            timed += block.seconds
        return timed

    def run(self, blocks: int, turn: int) -> None:
        """Several blocks in a row, for a worker that is alone and need not be asked each time."""
        (series,) = self.sample.series
        self.process.order(Go(series=series.name, steps=self.steps[series.name], blocks=blocks))
        for index in range(blocks):
            series.blocks.append(self._timed(series.name, turn + index))

    def suspend(self) -> None:
        """Stops the worker while others have their turn; what happens meanwhile is not counted as its own."""
        if self.metering:
            self.meter.pause()
        self.process.suspend()

    def resume(self) -> None:
        """Gives the worker its turn."""
        if self.process.suspended:
            self.process.resume()
            if self.metering:
                self.meter.resume()

    def finish(
        self, prove: bool, latency: bool, inspect: bool = False, stages: bool = False, waits: bool = True
    ) -> None:
        """The latency pass, then what is measured after the timed part, and the worker's end.

        Of a worker that started beside others only its steps are wanted.
        """
        brief = self.sample.start_position is None
        self._stop_meter()
        for series in self.sample.series:
            if not stayed([b.step_seconds for b in series.blocks]):
                series.settled = False
        if latency and not brief:
            self.tell("latency", "")
            self.process.order(Latency(steps=LATENCY_STEPS, seconds=LATENCY_SECONDS))
            self.until(Latencies)
        self.process.order(Finish(prove=prove, inspect=inspect, stages=stages, brief=brief, waits=waits))
        self.until(Done)
        self.close()

    def profile(self, folder: Path, steps: int) -> Profile:
        """Has a trace of so many steps written into a folder, and the worker end; returns what the trace says."""
        self._stop_meter()
        self.tell("profile", "")
        self.process.order(Trace(folder=str(folder.resolve()), steps=steps))
        traced: Traced = self.until(Traced)
        self.close()  # with nobody to ask for more, it ends
        return traced.profile

    def train(self) -> None:
        """Waits for a whole training."""
        self.until(Done)
        self.close()

    def fail(self, failure: Failure) -> None:
        """Ends the worker; what it measured stays, with the reason why it is not whole."""
        self.sample.failure = failure
        self._stop_meter()
        self.process.kill()
        self.close()

    def close(self) -> None:
        """Lets the worker end."""
        if self.alive:
            self.alive = False
            self._stop_meter()
            self.process.close()

    def _stop_meter(self) -> None:
        if self.metering:
            self.metering = False
            self.sample.telemetry = self.meter.stop()


def _block_of(timed: Timed, turn: int) -> Block:
    return Block(seconds=timed.seconds, steps=timed.steps, cpu_seconds=timed.cpu_seconds, position=turn)


def _add(event: Event, sample: ProcessSample) -> None:
    """Adds what an event reports to the sample."""
    if isinstance(event, PhaseDone):
        sample.phases[event.phase] = event.seconds
    elif isinstance(event, FactsRead):
        sample.facts = event.facts
    elif isinstance(event, Note):
        sample.notes.append(event.text)
    elif isinstance(event, Answer):
        sample.first_losses, sample.loss_precision = event.values, event.kind
    elif isinstance(event, Latencies):
        sample.latency = event.seconds
    elif isinstance(event, Proof):
        sample.placement = event.placement
    elif isinstance(event, Trained):
        sample.full_training = event.full
