"""Reads what the events of a worker report into its sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.model.device import Device
from bench.model.framework import Framework
from bench.model.phase import Activity
from bench.model.sample import Block, ProcessSample, Series
from bench.session.worker_process import WorkerProcess
from bench.worker.protocol import (
    BlockTimed,
    Done,
    EnvironmentRead,
    Event,
    FactsRead,
    FirstLosses,
    Latencies,
    Note,
    PeersTimed,
    PhaseEnded,
    PhaseStarted,
    PlacementChecked,
    PrintedRead,
    ProfileRead,
    ProgramEnded,
    Ready,
    Trained,
)


class OutOfSteps(Exception):
    """A script ended by itself, so there are no more blocks."""


class SampleEvents:
    """Reads the events of a worker into its sample.

    Args:
        process: The process of the worker.
        sample: Its sample.
        report: Called with the phase and a note whenever the phase changes.

    Attributes:
        framework: The version of TensorFlow and the like. None until the worker has reported it.
        device: The device. None until the worker has reported it.
    """

    def __init__(self, process: WorkerProcess, sample: ProcessSample, report: Callable[[Activity, str], None]) -> None:
        self._process = process
        self._sample = sample
        self._report = report
        self.framework: Framework | None = None
        self.device: Device | None = None
        self._slow = ""  # why it may be silent for minutes until its first steps are done

    def until(self, kind: type[Event]) -> Any:
        """Collect events until one of this kind comes, and return it.

        Raises:
            OutOfSteps: A script ended before.
        """
        if self._sample.ended and kind in (BlockTimed, Latencies, ProfileRead):
            raise OutOfSteps
        while True:
            event = self._process.event()
            self._take(event)
            if isinstance(event, kind):
                return event
            if isinstance(event, ProgramEnded):
                self._sample.ended = True
                if kind is not Done:
                    raise OutOfSteps

    def _take(self, event: Event) -> None:
        if isinstance(event, PhaseStarted):
            self._slow = event.note if event.slow else self._slow
            self._report(event.phase, event.note or self._slow)
        elif isinstance(event, EnvironmentRead):
            self.framework, self.device = event.framework, event.device
        elif isinstance(event, Ready):
            self._slow = ""
            self._sample.series = [
                Series(name=name, bytes=event.bytes.get(name), floor=event.floors.get(name)) for name in event.series
            ]
        else:
            _add(event, self._sample)


def block_of(timed: BlockTimed, position: int) -> Block:
    """Return a block as a sample holds it."""
    return Block(
        seconds=timed.seconds,
        steps=timed.steps,
        cpu_seconds=timed.cpu_seconds,
        position=position,
        epoch_end_seconds=timed.epoch_end_seconds,
    )


def _add(event: Event, sample: ProcessSample) -> None:
    if isinstance(event, PhaseEnded):
        sample.phases[event.phase] = event.seconds
    elif isinstance(event, FactsRead):
        sample.facts = event.facts
    elif isinstance(event, Note):
        sample.notes.append(event.text)
    elif isinstance(event, FirstLosses):
        sample.first_losses, sample.loss_precision = event.values, event.precision
    elif isinstance(event, Latencies):
        sample.latency = event.seconds
    elif isinstance(event, PeersTimed):
        sample.peer_step_ratios, sample.slowest_step_ratio = event.step_ratios, event.slowest_step_ratio
    elif isinstance(event, PlacementChecked):
        sample.placement = event.placement
    elif isinstance(event, PrintedRead):
        sample.printed = event.printed
    elif isinstance(event, Trained):
        sample.full_training = event.full
