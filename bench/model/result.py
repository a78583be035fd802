"""The result: one JSON document per spec, raw block times included. Every output is made from it.

Units are SI base units: seconds, bytes, watts, joules, hertz. Times come from `time.perf_counter`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, get_args

from pydantic import Field

from bench.model.environment import Environment
from bench.model.failure import Failure
from bench.model.interval import Interval
from bench.model.phase import Phase
from bench.model.placement import Placement
from bench.model.profile import Profile
from bench.model.recognition import Recognition
from bench.model.record import Record
from bench.model.sample import FullTraining, ProcessSample
from bench.model.spec import Spec

SCHEMA_VERSION = 2

ResultStatus = Literal["complete", "partial", "failed"]
RESULT_STATUSES: tuple[ResultStatus, ...] = get_args(ResultStatus)

Purpose = Literal["run", "sweep", "level", "what-if", "peaks", "scale"]


class Summary(Record):
    """Figures over all processes of a result. Its fields are null or empty if nothing usable was measured."""

    step_seconds: Interval | None = Field(
        None, description="typical step: median of a process's blocks, over processes"
    )
    step_seconds_mean: Interval | None = Field(
        None, description="mean step: mean of a process's blocks, over processes"
    )
    step_seconds_p50: float | None = Field(None, description="median of single steps in the latency pass")
    step_seconds_p90: float | None = Field(None, description="90th percentile of single steps")
    step_seconds_p99: float | None = Field(None, description="99th percentile of single steps")
    examples_per_second: float | None = Field(None, description="throughput at the typical step")
    epoch_examples_per_second: float | None = Field(
        None,
        description="throughput over whole epochs, at the mean step, with what passes between epochs; null if an epoch "
        "has no end that was timed",
    )
    flops_per_step: float | None = Field(None, description="floating-point operations of a step")
    flops_per_second: float | None = Field(None, description="floating-point operations per second at the typical step")
    cost_per_1000_steps: float | None = Field(None, description="at the mean step, in the currency of the price")
    phases: dict[Phase, Interval] = Field(default_factory=dict, description="phase to mean seconds")
    cold_start_seconds: Interval | None = Field(
        None, description="mean seconds from the start of a process to the end of its first step"
    )
    warmed_up_seconds: Interval | None = Field(
        None, description="mean seconds from the start of a process to the steady state: cold start and warm-up"
    )
    xla: bool | None = Field(None, description="whether XLA compiled the step; null if unknown")
    series: dict[str, Interval] = Field(
        default_factory=dict, description="seconds per step of each series, its floor subtracted"
    )
    bytes_per_second: dict[str, float] = Field(
        default_factory=dict, description="bandwidth of each series that moves bytes"
    )


class Projection(Record):
    """The estimated time of the whole training."""

    steps: int = Field(description="number of steps")
    planned_steps: int | None = Field(
        None, description="steps that the program planned; more than `steps` if its training stopped by itself"
    )
    build_and_fit_seconds: Interval = Field(description="build and fit, as most articles time it")
    total_seconds: Interval = Field(description="from the start of the interpreter to the end of the training")
    epoch_end_wait_seconds: float = Field(0.0, description="expected waits at the ends of epochs, part of both")
    cost: float | None = Field(None, description="cost from a cold start, in the currency of the price")
    full_training: FullTraining | None = Field(None, description="the same, measured (`--full`)")

    @property
    def build_and_fit_error(self) -> float | None:
        """Relative error of `build_and_fit_seconds`. None if no full training was measured."""
        full = self.full_training
        return self.build_and_fit_seconds.value / full.build_and_fit_seconds - 1 if full else None

    @property
    def total_error(self) -> float | None:
        """Relative error of `total_seconds`. None if no full training was measured."""
        full = self.full_training
        return self.total_seconds.value / full.total_seconds - 1 if full else None


class ResultWarning(Record):
    """A reason to trust a result less, and its fix."""

    key: str = Field(description="its name; the reference explains each")
    message: str = Field(description="what happened")
    fix: str = Field("", description="what to do about it")


class Price(Record):
    """What the machine costs."""

    per_hour: float = Field(description="price per hour")
    currency: str = Field(description="ISO 4217 code")


StopReason = Literal["target", "max-time", "max-processes", "failed", "interrupted"]


class Stop(Record):
    """Why no more trials were run."""

    reason: StopReason = Field(description="what ended the run")
    trials: int = Field(description="number of trials")
    needed_trials: int | None = Field(None, description="trials that the target needs, estimated from the pilot")
    error: float | None = Field(
        None, description="relative error of the typical step, or of the ratio if specs are compared"
    )
    target: float | None = Field(None, description="relative error asked for, or the threshold if specs are compared")
    settled: bool = Field(False, description="whether the target was reached, or every verdict settled")
    by_epochs: bool = Field(
        False,
        description="whether at least one verdict of the group is settled only over whole epochs, so that of its steps "
        "is undecided",
    )
    error_of: Literal["step", "ratio"] = Field(
        "step", description="what the error is of: the typical step, or its ratio to the baseline"
    )
    seconds: float | None = Field(
        None, description="wall time from the start of the first worker until the result was known"
    )


class SweepMembership(Record):
    """The sweep that a point belongs to."""

    axes: list[str] = Field(description="the parameters that are swept")
    incomplete_reason: str | None = Field(None, description="why the values after this point were skipped")


class Result(Record):
    """All process samples of a spec, with their environment."""

    schema_version: int = Field(SCHEMA_VERSION, description="version of the schema")
    id: str = Field(description="its id, derived from `--run-id` if that is given")
    attempt: int = Field(1, ge=1, le=2**31 - 1, description="which attempt at this id; a later one supersedes it")
    status: ResultStatus = Field(
        "partial", description="whether the run reached its target or a cap, was interrupted, or failed"
    )
    created: datetime = Field(description="when its first worker was started")
    devbench: str = Field(description="version of devbench")
    spec: Spec
    key: str = Field(description="16 digits that name the spec; repetitions share them")
    fingerprint: str = Field(
        "", description="fingerprint of the machine (CPU and its limit, pool, instance type, device) and of TensorFlow"
    )
    group: str = Field(description="id shared by the results that were measured together")
    purpose: Purpose = Field(
        "run",
        description="a run of its own, a point of a sweep, a part of an explanation, or a level of a scaling study",
    )
    parent: str | None = Field(None, description="id of the sweep, explanation or scaling study that it belongs to")
    sweep: SweepMembership | None = None
    environment: Environment = Field(default_factory=Environment, description="where it was measured")
    price: Price | None = None
    summary: Summary = Field(default_factory=Summary)
    projection: Projection | None = None
    placement: Placement | None = None
    recognition: Recognition | None = Field(None, description="how the steps of a script were recognized")
    profile: Profile | None = None
    stop: Stop | None = None
    interleaved: bool = Field(
        True,
        description="false if the memory could not hold all workers of a trial, so that whole processes alternated",
    )
    notes: list[str] = Field(default_factory=list, description="what to know about the program and the run")
    warnings: list[ResultWarning] = Field(default_factory=list)
    failure: Failure | None = None
    samples: list[ProcessSample] = Field(
        default_factory=list, description="one per process; last, so that everything else can be read without them"
    )

    def add_note(self, note: str) -> None:
        """Add a note, unless the result has it."""
        if note not in self.notes:
            self.notes.append(note)
