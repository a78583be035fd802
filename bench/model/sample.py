"""The sample: what one worker process measured.

Units are SI base units: seconds and bytes. Times come from `time.perf_counter`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from bench.model.facts import Facts
from bench.model.failure import Failure
from bench.model.interval import Number
from bench.model.phase import Phase
from bench.model.placement import Placement
from bench.model.printed import Printed
from bench.model.record import Record
from bench.model.telemetry import Telemetry


class Block(Record):
    """Steps timed together, ended by a synchronization."""

    seconds: float = Field(description="wall time of its steps, including the synchronization")
    steps: int = Field(ge=1, description="number of steps")
    cpu_seconds: float = Field(description="CPU time of the worker's process")
    position: int = Field(-1, description="position in the trial's order of blocks; -1 during warm-up")
    epoch_end_seconds: float = Field(
        0.0, description="time between epochs of fit while it ran, with partial batches; not part of `seconds`"
    )

    @property
    def wall_seconds(self) -> float:
        """Seconds from its start to its end."""
        return self.seconds + self.epoch_end_seconds

    @property
    def step_seconds(self) -> float:
        """Mean seconds of one step in this block."""
        return self.seconds / self.steps


class Series(Record):
    """Blocks of one kind of work. Loops have one series, `step`; `transfer` has one per size and direction."""

    name: str = Field("step", description="name of the work")
    warmup: list[Block] = Field(default_factory=list, description="blocks before the steady state")
    blocks: list[Block] = Field(default_factory=list, description="blocks of the steady state")
    settled: bool = Field(True, description="whether the steps settled")
    bytes: int | None = Field(None, description="bytes that one step moves, if that is its purpose")
    floor: str | None = Field(None, description="series whose time is subtracted from this one")


class FullTraining(Record):
    """What a whole training took (`--full`)."""

    build_and_fit_seconds: float = Field(description="build and fit, as most articles time it")
    total_seconds: float = Field(description="from the start of the interpreter to the end of the training")
    steps: int = Field(description="number of steps")
    planned_steps: int | None = Field(
        None, description="steps that its calls of fit planned; more than `steps` if the training stopped by itself"
    )
    epoch_ends: list[float] = Field(
        default_factory=list,
        description="for each epoch, seconds from its last step to the next epoch's first step or the program's end",
    )
    metrics: dict[str, Number] = Field(default_factory=dict, description="loss, accuracy and so on at the end")


LossPrecision = Literal["exact", "reduced", "changed"]
"""How exactly first losses can be expected to agree. changed: the program computes something else each time."""


class ProcessSample(Record):
    """What one worker process measured."""

    trial: int = Field(description="number of its trial, from 1")
    start_position: int | None = Field(
        0, description="position in which it was started within its trial, from 0; null if several started at once"
    )
    forked: bool = Field(
        False, description="whether it was forked from a process that had imported TensorFlow, so its start is not cold"
    )
    pid: int = Field(description="process id")
    started: datetime = Field(description="when it was started")
    phases: dict[Phase, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict, description="phase to seconds, on a cold start"
    )
    series: list[Series] = Field(default_factory=list, description="its blocks, by kind of work")
    peer_step_ratios: list[float] = Field(
        default_factory=list,
        description="steps of each other worker over those of the first, timed together, by rising index",
    )
    slowest_step_ratio: float | None = Field(
        None, description="mean of the slowest worker's step, over a step of the first; null if it was not measured"
    )
    latency: list[float] = Field(default_factory=list, description="seconds of the steps of the latency pass")
    first_losses: list[Number] = Field(
        default_factory=list, description="losses of the first steps, or the root mean square of their outputs"
    )
    loss_precision: LossPrecision = Field("exact", description="tolerance of the same-answer check")
    telemetry: Telemetry | None = None
    placement: Placement | None = None
    facts: Facts = Field(default_factory=Facts, description="what the worker read from its run, besides times")
    notes: list[str] = Field(default_factory=list, description="notes for the reader")
    full_training: FullTraining | None = None
    ended: bool = Field(False, description="whether the script ended before enough steps were measured")
    printed: Printed | None = Field(None, description="what the script printed")
    failure: Failure | None = None
