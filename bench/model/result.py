"""The result: one JSON document per spec, raw block times included. Every output is made from it.

Units are SI base units: seconds, bytes, watts, joules, hertz. Times come from `time.perf_counter`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from bench.model.facts import Facts
from bench.model.record import Record
from bench.model.spec import Spec

SCHEMA_VERSION = 1

PHASES = (
    "interpreter", "import", "device_init", "data", "build", "prepare", "trace", "first_step", "warm_up",
    "batch_copy", "input_wait", "partial_batch", "partial_batch_again", "epoch_end",
)  # fmt: skip
"""In the order that a training meets them."""


Purpose = Literal["run", "sweep", "level", "what-if", "peaks"]


Number = Annotated[
    float,
    BeforeValidator(lambda value: float("nan") if value is None else value),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "null"}]}),
]
"""A measured value that may be no number (NaN, infinite), which JSON can only hold as null."""


class Interval(Record):
    """An estimate with its two-sided confidence interval; low and high are none when n is 1."""

    value: float
    low: float | None = None
    high: float | None = None
    confidence: float = 0.95
    n: int = Field(1, description="number of units (processes or trials) behind it")

    @property
    def relative_error(self) -> float | None:
        """Half the interval's width over its value, or none."""
        if self.low is None or self.high is None or not self.value:
            return None
        return (self.high - self.low) / 2 / abs(self.value)


class Block(Record):
    """Steps timed together, ended by a synchronisation."""

    seconds: float = Field(description="wall time of the whole block, synchronisation included")
    steps: int = Field(ge=1)
    cpu_seconds: float = Field(description="CPU time that the worker's process used in it")
    position: int = Field(-1, description="position in the trial's order of turns; -1 while warming up")

    @property
    def step_seconds(self) -> float:
        """Mean seconds of one step in this block."""
        return self.seconds / self.steps


class Series(Record):
    """Blocks of one kind of work. Loops have one, named `step`; `transfer` has one a size and direction."""

    name: str = "step"
    warmup: list[Block] = Field(default_factory=list)
    blocks: list[Block] = Field(default_factory=list)
    settled: bool = Field(True, description="whether the end of warm-up was seen")
    bytes: int | None = Field(None, description="bytes that one step moves, where that is its purpose")
    floor: str | None = Field(None, description="the series whose time is subtracted from this one's")


class Telemetry(Record):
    """Counters over the steady window of one process only."""

    wall_seconds: float
    cpu_seconds: float | None = Field(None, description="CPU time of the worker, all threads")
    peak_rss_bytes: int | None = None
    load_before: float | None = Field(None, description="1-minute load average before the worker started")
    throttled_seconds: float | None = Field(None, description="time the cgroup was held back by its CPU quota")
    throttled_periods: int | None = None
    stolen_seconds: float | None = Field(None, description="CPU time the hypervisor gave to others, all CPUs")
    package_joules: float | None = Field(None, description="CPU packages' energy (RAPL)")
    gpu_utilization_ratio: float | None = None
    gpu_memory_bytes: int | None = None
    gpu_power_watts: float | None = None
    gpu_joules: float | None = Field(None, description="from the GPU's energy counter")
    gpu_sm_clock_hz: float | None = None
    gpu_sm_clock_spread: float | None = Field(None, description="(max - min) / mean of the SM clock")
    gpu_temperature_celsius: float | None = None
    gpu_temperature_rise_celsius: float | None = Field(None, description="the last temperature less the first")
    gpu_throttle_reasons: list[str] = Field(default_factory=list)


class Operation(Record):
    """One operation of a partitioned graph."""

    name: str
    op: str
    device: str


class Placement(Record):
    """Where the operations of one step ran, read after the timed part."""

    requested_device: str = Field(description="device that was asked for, such as CPU:0")
    method: str = Field(
        description="how it was proven: partition graphs, eager graphs, session metadata, device of the output"
    )
    verified: bool = Field(description="false when there was no evidence or an operation ran elsewhere")
    on_device: int = Field(description="operations on the asked device")
    host_by_design: dict[str, int] = Field(
        default_factory=dict, description="operation type: count, on the host where they belong"
    )
    misplaced: list[Operation] = Field(default_factory=list)
    xla_clusters: int = 0
    devices: dict[str, int] = Field(default_factory=dict, description="operations by device")
    reason: str | None = Field(None, description="why it is not proven")


class Failure(Record):
    """How a worker ended that did not finish."""

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
    ]
    message: str
    hint: str = ""
    exit_code: int | None = None
    signal: str | None = None
    phase: str | None = Field(None, description="what it was doing")
    last_lines: list[str] = Field(default_factory=list, description="the end of what it wrote to stderr")


class FullTraining(Record):
    """What a whole training really took (`--full`)."""

    build_and_fit_seconds: float = Field(description="build and fit, as the article timed it")
    total_seconds: float = Field(description="from the interpreter's start to the end of training")
    steps: int
    epoch_ends: list[float] = Field(
        default_factory=list,
        description="of each epoch: seconds between its last step and the next one's first, or the program's end",
    )
    metrics: dict[str, Number] = Field(default_factory=dict, description="loss, accuracy and so on at the end")


class OperationTime(Record):
    """Operations of one kind in a profile, on all threads or streams together."""

    name: str
    seconds: float = Field(description="of a step")
    calls: float = Field(description="a step")


class Profile(Record):
    """How the time of a step divides by a trace of TensorFlow's profiler (`--profile`); tracing makes it longer."""

    folder: str = Field(description="where the trace lies, for TensorBoard")
    steps: int = Field(description="traced")
    step_seconds: float = Field(description="of a traced step")
    device_share: float | None = Field(
        description="of the step, in which an operation ran on the device; none where the device writes no trace"
    )
    input_share: float = Field(description="in which none did, and the next batch was waited for")
    host_share: float = Field(description="in which neither, and TensorFlow was at work on the host")
    idle_share: float = Field(description="in which none of these: Python's own work, or waiting")
    operations: list[OperationTime] = Field(default_factory=list, description="the longest first")


class ProcessSample(Record):
    """What one fresh worker process measured."""

    trial: int
    start_position: int | None = Field(
        0, description="position in which it was started within its trial, from 0; none where several started at once"
    )
    pid: int
    started: datetime
    phases: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict, description="phase: seconds, on a cold start"
    )
    series: list[Series] = Field(default_factory=list)
    latency: list[float] = Field(
        default_factory=list, description="seconds of single steps, each synchronised, in a pass of their own"
    )
    first_losses: list[Number] = Field(
        default_factory=list, description="losses, or a sum of the outputs, of the first steps"
    )
    loss_precision: Literal["exact", "reduced", "changed"] = "exact"
    telemetry: Telemetry | None = None
    placement: Placement | None = None
    facts: Facts = Field(default_factory=Facts, description="what the worker read from its run, beside times")
    notes: list[str] = Field(default_factory=list)
    full_training: FullTraining | None = None
    failure: Failure | None = None


class Summary(Record):
    """Figures over all processes of a result; none where nothing usable was measured."""

    step_seconds: Interval | None = Field(
        None, description="typical step: median of a process's blocks, over processes"
    )
    step_seconds_mean: Interval | None = Field(None, description="mean step, as a bill shows it")
    step_seconds_p50: float | None = None
    step_seconds_p90: float | None = None
    step_seconds_p99: float | None = None
    examples_per_second: float | None = None
    flops_per_step: float | None = None
    flops_per_second: float | None = None
    cost_per_1000_steps: float | None = Field(None, description="at the mean step, in the price's currency")
    phases: dict[str, Interval] = Field(default_factory=dict)
    series: dict[str, Interval] = Field(
        default_factory=dict, description="seconds a step of each series, floor subtracted"
    )
    bytes_per_second: dict[str, float] = Field(
        default_factory=dict, description="bandwidth of each series that moves bytes"
    )


class Projection(Record):
    """What the workload's whole training takes, in both brackets."""

    steps: int
    build_and_fit_seconds: Interval = Field(description="build and fit")
    total_seconds: Interval = Field(description="from the interpreter's start")
    epoch_end_wait_seconds: float = Field(0.0, description="expected waits at the ends of epochs, part of both")
    cost: float | None = Field(None, description="of it all from a cold start, in the price's currency")
    full_training: FullTraining | None = Field(None, description="the truth, where --full was asked for")


class ResultWarning(Record):
    """Something doubtful, and what to do about it."""

    key: str
    message: str
    fix: str = ""


class Price(Record):
    """What the machine costs."""

    per_hour: float
    currency: str = Field(description="ISO 4217 code")


StopReason = Literal["target", "max-time", "max-processes", "failed", "interrupted"]


class Stop(Record):
    """Why no more trials were run."""

    reason: StopReason
    trials: int
    needed_trials: int | None = Field(None, description="trials that the pilot said the target needs")
    error: float | None = Field(
        None, description="relative error of the typical step, or of the ratio when specs are compared"
    )
    target: float | None = Field(
        None, description="relative error asked for, or the difference that matters when specs are compared"
    )
    settled: bool = Field(False, description="whether the target was reached, or every verdict settled")
    error_of: Literal["step", "ratio"] = Field(
        "step", description="what the error is of: the typical step, or its ratio to the baseline"
    )
    seconds: float | None = Field(None, description="wall time from the first worker's start until this was known")


class SweepMembership(Record):
    """What a point tells of its sweep."""

    axes: list[str] = Field(description="the parameters that are swept")
    cut_short: str | None = Field(
        None, description="why values were left out, with the last point before that was known"
    )


class Result(Record):
    """All process samples of a spec, with their environment."""

    schema_version: int = SCHEMA_VERSION
    id: str
    attempt: int = Field(1, ge=1, le=2**31 - 1, description="which attempt at this id; a later one supersedes it")
    status: Literal["complete", "partial", "failed"] = "partial"
    created: datetime
    devbench: str = Field(description="version of devbench")
    spec: Spec
    key: str = Field(description="the spec's key")
    machine: str = Field("", description="fingerprint of the machine and TensorFlow; with equal keys a repetition")
    group: str = Field(description="id shared by the results whose workers took turns")
    purpose: Purpose = Field(
        "run",
        description="measured by itself, as a point of a sweep, or as a level, a change or the peaks of an explanation",
    )
    parent: str | None = Field(None, description="id of the sweep or explanation that it belongs to")
    sweep: SweepMembership | None = None
    environment: dict[str, Any] = Field(default_factory=dict)
    price: Price | None = None
    summary: Summary = Field(default_factory=Summary)
    projection: Projection | None = None
    placement: Placement | None = None
    profile: Profile | None = None
    stop: Stop | None = None
    interleaved: bool = Field(
        True, description="false when memory did not hold the trial, so whole processes took turns"
    )
    notes: list[str] = Field(
        default_factory=list, description="what the source article gets wrong, and what was read from the run"
    )
    warnings: list[ResultWarning] = Field(default_factory=list)
    failure: Failure | None = None
    samples: list[ProcessSample] = Field(
        default_factory=list, description="one for each process; last, so that what comes before can be read alone"
    )
