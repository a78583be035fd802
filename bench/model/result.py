"""The result: one JSON document per spec, raw block times included. Every output is made from it.

Units are SI base units: seconds, bytes, watts, joules, hertz. Times come from `time.perf_counter`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from bench.model.environment import Environment
from bench.model.facts import Facts
from bench.model.phase import Phase
from bench.model.record import Record
from bench.model.spec import Spec

SCHEMA_VERSION = 2

Purpose = Literal["run", "sweep", "level", "what-if", "peaks"]


Number = Annotated[
    float,
    BeforeValidator(lambda value: float("nan") if value is None else value),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "null"}]}),
]
"""A measured value that may be no number (NaN, infinite), which JSON can only hold as null."""


class Interval(Record):
    """An estimate with its two-sided confidence interval."""

    value: float = Field(description="the estimate")
    low: float | None = Field(None, description="lower bound; null if there is one unit only")
    high: float | None = Field(None, description="upper bound; null if there is one unit only")
    confidence: float = Field(0.95, description="level of the interval, from 0 to 1")
    n: int = Field(1, description="number of units (processes or trials) behind it")

    @property
    def relative_error(self) -> float | None:
        """Half of the interval's width divided by its value. None if a bound is missing or the value is 0."""
        if self.low is None or self.high is None or not self.value:
            return None
        return (self.high - self.low) / 2 / abs(self.value)


class Block(Record):
    """Steps timed together, ended by a synchronization."""

    seconds: float = Field(description="wall time of the whole block, including the synchronization")
    steps: int = Field(ge=1, description="number of steps")
    cpu_seconds: float = Field(description="CPU time of the worker's process")
    position: int = Field(-1, description="position in the trial's order of blocks; -1 during warm-up")

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


class Telemetry(Record):
    """Counters over the steady state of one process."""

    wall_seconds: float = Field(description="length of the steady state")
    cpu_seconds: float | None = Field(None, description="CPU time of the worker, all threads and child processes")
    peak_rss_bytes: int | None = Field(None, description="highest memory use in the lifetime of the worker")
    load_before: float | None = Field(None, description="1-minute load average before the run")
    throttled_seconds: float | None = Field(None, description="throttled time, summed over CPUs")
    throttled_periods: int | None = Field(None, description="throttled periods of the CPU quota")
    stolen_seconds: float | None = Field(None, description="stolen time, summed over CPUs")
    package_joules: float | None = Field(None, description="energy of the CPU packages (RAPL), all processes")
    gpu_utilization_ratio: float | None = Field(
        None, description="mean share of time in which the GPU was busy, from 0 to 1"
    )
    gpu_memory_bytes: int | None = Field(None, description="highest GPU memory use")
    gpu_power_watts: float | None = Field(None, description="mean power of the GPU")
    gpu_joules: float | None = Field(None, description="energy from the GPU's own counter")
    gpu_sm_clock_hz: float | None = Field(None, description="mean clock of the GPU's processors")
    gpu_sm_clock_spread: float | None = Field(None, description="(highest - lowest) / mean of that clock")
    gpu_temperature_celsius: float | None = Field(None, description="highest temperature of the GPU")
    gpu_temperature_rise_celsius: float | None = Field(
        None, description="temperature at the end minus temperature at the start"
    )
    gpu_throttle_reasons: list[str] = Field(
        default_factory=list, description="why the GPU lowered its clock, as NVML names it"
    )


class Operation(Record):
    """One operation of a partitioned graph."""

    name: str = Field(description="its name in the graph")
    op: str = Field(description="its type")
    device: str = Field(description="the device that it ran on")


class Placement(Record):
    """The placement check: where the operations of one step ran, read after the timed blocks."""

    requested_device: str = Field(description="requested device, such as CPU:0")
    method: str = Field(description="graphs that were read, such as partition graphs of a new step")
    verified: bool = Field(description="false if there was no evidence or an operation ran elsewhere")
    on_device: int = Field(description="operations on the requested device")
    host_by_design: dict[str, int] = Field(
        default_factory=dict, description="operations on the host where they belong: type to count"
    )
    misplaced: list[Operation] = Field(default_factory=list, description="operations on another device")
    xla_clusters: int = Field(0, description="clusters that XLA compiled")
    devices: dict[str, int] = Field(default_factory=dict, description="device to number of operations")
    reason: str | None = Field(None, description="why it is not verified")


class Failure(Record):
    """How a worker failed."""

    kind: Literal[
        "error",
        "workload",
        "data",
        "device",
        "memory",
        "crashed",
        "killed",
        "hung",
        "nan",
        "interrupted",
        "placement",
        "same-answer",
    ] = Field(description="cause; the reference explains each")
    message: str = Field(description="what happened, to what")
    hint: str = Field("", description="what to do about it")
    exit_code: int | None = Field(None, description="exit code of the process")
    signal: str | None = Field(None, description="name of the signal that ended the process")
    phase: str | None = Field(None, description="what the worker was doing")
    last_lines: list[str] = Field(default_factory=list, description="the end of its stderr")


class FullTraining(Record):
    """What a whole training took (`--full`)."""

    build_and_fit_seconds: float = Field(description="build and fit, as most articles time it")
    total_seconds: float = Field(description="from the start of the interpreter to the end of the training")
    steps: int = Field(description="number of steps")
    epoch_ends: list[float] = Field(
        default_factory=list,
        description="for each epoch, seconds from its last step to the next epoch's first step or the program's end",
    )
    metrics: dict[str, Number] = Field(default_factory=dict, description="loss, accuracy and so on at the end")


class OperationTime(Record):
    """Operations of one kind in a profile, summed over threads or streams."""

    name: str = Field(description="type of the operation")
    seconds: float = Field(description="seconds per step")
    calls: float = Field(description="calls per step")


class Profile(Record):
    """How the time of a step divides, by a trace of TensorFlow's profiler (`--profile`). Tracing makes steps longer."""

    folder: str = Field(description="folder of the trace, for TensorBoard")
    steps: int = Field(description="number of traced steps")
    step_seconds: float = Field(description="seconds of a traced step")
    device_share: float | None = Field(
        description="share of the step in which an operation ran on the device; null if the device writes no trace"
    )
    input_share: float = Field(description="share in which none ran and the step waited for the next batch")
    host_share: float = Field(description="share in which neither was the case and TensorFlow worked on the host")
    idle_share: float = Field(description="the rest: Python's own work, or waiting")
    operations: list[OperationTime] = Field(default_factory=list, description="the longest first")


LossPrecision = Literal["exact", "reduced", "changed"]
"""How exactly first losses can be expected to agree. changed: the program computes something else each time."""


class ProcessSample(Record):
    """What one worker process measured."""

    trial: int = Field(description="number of its trial, from 1")
    start_position: int | None = Field(
        0, description="position in which it was started within its trial, from 0; null if several started at once"
    )
    pid: int = Field(description="process id")
    started: datetime = Field(description="when it was started")
    phases: dict[Phase, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict, description="phase to seconds, on a cold start"
    )
    series: list[Series] = Field(default_factory=list, description="its blocks, by kind of work")
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
    failure: Failure | None = None


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
    flops_per_step: float | None = Field(None, description="floating-point operations of a step")
    flops_per_second: float | None = Field(None, description="floating-point operations per second at the typical step")
    cost_per_1000_steps: float | None = Field(None, description="at the mean step, in the currency of the price")
    phases: dict[Phase, Interval] = Field(default_factory=dict, description="phase to mean seconds")
    series: dict[str, Interval] = Field(
        default_factory=dict, description="seconds per step of each series, its floor subtracted"
    )
    bytes_per_second: dict[str, float] = Field(
        default_factory=dict, description="bandwidth of each series that moves bytes"
    )


class Projection(Record):
    """The estimated time of the whole training."""

    steps: int = Field(description="number of steps")
    build_and_fit_seconds: Interval = Field(description="build and fit, as most articles time it")
    total_seconds: Interval = Field(description="from the start of the interpreter to the end of the training")
    epoch_end_wait_seconds: float = Field(0.0, description="expected waits at the ends of epochs, part of both")
    cost: float | None = Field(None, description="cost from a cold start, in the currency of the price")
    full_training: FullTraining | None = Field(None, description="the same, measured (`--full`)")


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
    status: Literal["complete", "partial", "failed"] = Field(
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
    purpose: Purpose = Field("run", description="a run of its own, a point of a sweep, or a part of an explanation")
    parent: str | None = Field(None, description="id of the sweep or explanation that it belongs to")
    sweep: SweepMembership | None = None
    environment: Environment = Field(default_factory=Environment, description="where it was measured")
    price: Price | None = None
    summary: Summary = Field(default_factory=Summary)
    projection: Projection | None = None
    placement: Placement | None = None
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
