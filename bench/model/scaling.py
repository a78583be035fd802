"""A scaling study: the throughput of one program with one worker and with several, and where the rest of it goes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bench.model.interval import Interval
from bench.model.record import Record
from bench.model.result import ResultWarning
from bench.model.spec import Scaling as Scaling
from bench.model.spec import Strategy

PartName = Literal["ideal", "strategy", "input", "batch", "waiting", "all-reduce"]
"""A part of the step of several workers.

ideal: the step of one worker without a strategy (the bare worker), divided by the number of workers if they share each
batch. strategy: the extra time of one worker's step under the strategy. input: the extra time of the input, beyond its
ideal share. batch: the extra time of the computation, because batches are smaller or workers share the machine's
memory. waiting: the time in which the others wait for the slowest worker of each step. all-reduce: the exchange of the
gradients.
"""


class ScalingPart(Record):
    """A part of the step of several workers, measured as the difference between two levels."""

    name: PartName = Field(description="what the time is spent on")
    seconds: Interval = Field(description="seconds of a step; a negative value is a saving")
    share: float = Field(description="of the step")


class Size(Record):
    """The program with one number of workers."""

    workers: int = Field(description="number of workers")
    id: str = Field(description="id of the result")
    step_seconds: Interval | None = Field(None, description="typical step; null if it was not measured")
    examples_per_second: Interval | None = Field(None, description="throughput of all workers together")
    speed_up: Interval | None = Field(None, description="throughput over that of the bare worker")
    efficiency: Interval | None = Field(None, description="speed-up divided by the number of workers")
    parts: list[ScalingPart] = Field(default_factory=list, description="where the step goes, in the order of PartName")
    slowest_worker: int | None = Field(None, description="index of the worker that the others wait for; null if none")
    all_reduce_bytes: int | None = Field(None, description="bytes that a worker sends for one ring all-reduce")
    bandwidth: float | None = Field(None, description="bytes per second of the all-reduce, by its part of the step")
    cold_start_seconds: float | None = Field(
        None, description="from the start of a process to the end of its first step"
    )
    training_seconds: float | None = Field(None, description="projected time of the whole training from a cold start")
    cost: float | None = Field(None, description="of that training on all workers, in the currency of the price")
    losses_compared: bool | None = Field(
        None,
        description="whether its first losses were compared with those of the bare worker. None if it failed, or if "
        "an earlier version of devbench wrote it",
    )
    refused: str | None = Field(None, description="why its figures do not count: its losses differ")
    failure: str | None = Field(None, description="why it failed")
    hint: str = Field("", description="what to do about that, and the end of the stderr")


class ScalingStudy(Record):
    """A program on a backend with several numbers of workers."""

    id: str = Field(description="id that its results have as their parent")
    workload: str = Field(description="name of the workload, with its case")
    backend: str = Field(description="where it ran")
    strategy: Strategy = Field(description="the strategy of its workers")
    scaling: Scaling = Field(description="strong: workers share each batch. weak: each worker has its own batches")
    cpus: int | None = Field(None, description="CPUs that each worker is pinned to")
    batch: int | None = Field(None, description="examples of a batch of one worker alone")
    bare: Interval | None = Field(None, description="typical step of one worker without a strategy")
    bare_examples_per_second: Interval | None = Field(None, description="throughput of that worker")
    sizes: list[Size] = Field(description="by rising number of workers")
    serial_share: float | None = Field(
        None,
        description="smallest share of one worker's step that does not get faster with workers, by the interval of the "
        "speed-up (Karp and Flatt, 1990)",
    )
    amdahl_bound: float | None = Field(None, description="speed-up that no number of workers exceeds, by that share")
    bandwidth_bound: float | None = Field(
        None, description="speed-up that no number of workers exceeds, by the bandwidth of the all-reduce"
    )
    break_even_steps: dict[str, int] = Field(
        default_factory=dict,
        description="number of workers to the steps from which a training is certainly faster than alone",
    )
    currency: str | None = Field(None, description="of the costs")
    fastest: int | None = Field(None, description="workers with the shortest training; null if that is not settled")
    cheapest: int | None = Field(None, description="workers with the cheapest training; null if that is not settled")
    failures: list[str] = Field(
        default_factory=list, description="levels that failed and are no size, each with the reason"
    )
    failure_hint: str = Field("", description="what to do about the first of these failures, and the end of its stderr")
    warnings: list[ResultWarning] = Field(default_factory=list, description="warnings of its results, one of each kind")
    threshold: float = Field(description="smallest relative difference that matters")
