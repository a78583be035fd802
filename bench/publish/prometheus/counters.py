"""Counters of a result while it grows: steps, examples, single steps by their time, and throttled time.

They are updated between blocks only. An update takes about 20 µs: it counts the latest process again, and adds the
counts of all processes before it.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bench.machine import limits
from bench.model.result import RESULT_STATUSES, Result
from bench.model.sample import ProcessSample
from bench.model.telemetry import Telemetry

BUCKETS = tuple(2.0**power * 1e-6 for power in range(27))
"""Upper bounds of the histogram in seconds: powers of two from 1 µs to 67 s."""

STATES = ("running", *RESULT_STATUSES)
SPEC_LABELS = ("backend", "loop", "dtype")
RESULT_LABELS = ("key", "group", "purpose", "parent", "devbench")
DEPLOYMENT_LABELS = ("pool", "node", "instance_type", "image")
INFO = ("workload", *SPEC_LABELS, "workers", *RESULT_LABELS, *DEPLOYMENT_LABELS)
"""Labels of `devbench_run_info`. They are known when a run starts, so they never change."""


@dataclass(frozen=True)
class Counts:
    """Numbers that only grow.

    Args:
        steps: Timed steps.
        throttled: Throttled time in seconds. None if the machine does not report it.
        buckets: Single steps per bucket. The last bucket has no upper bound.
        seconds: Time of all single steps together.
    """

    steps: int = 0
    throttled: float | None = None
    buckets: tuple[int, ...] = (0,) * (len(BUCKETS) + 1)
    seconds: float = 0.0

    @classmethod
    def of(cls, sample: ProcessSample) -> Counts:
        """Return the counts of one process so far."""
        blocks = (block for series in sample.series for block in (*series.warmup, *series.blocks))
        buckets = [0] * (len(BUCKETS) + 1)
        for seconds in sample.latency:
            buckets[bisect_left(BUCKETS, seconds)] += 1
        return cls(
            steps=sum(block.steps for block in blocks) + len(sample.latency),
            throttled=sample.telemetry.throttled_seconds if sample.telemetry else None,
            buckets=tuple(buckets),
            seconds=sum(sample.latency),
        )

    def __add__(self, other: Counts) -> Counts:
        throttled = [counts.throttled for counts in (self, other) if counts.throttled is not None]
        return Counts(
            steps=self.steps + other.steps,
            throttled=sum(throttled) if throttled else None,
            buckets=tuple(a + b for a, b in zip(self.buckets, other.buckets, strict=True)),
            seconds=self.seconds + other.seconds,
        )


@dataclass
class Run:
    """A result that is being measured, with its counts.

    Args:
        result: The result. It grows between two updates. Only `update` reads it.
        examples_per_step: Examples of a step. None if steps have none.

    Attributes:
        counts: Counts of all its processes.
        examples: Examples in the counted steps.
        info: What identifies it. It never changes.
        values: The value of each metric at the last update, by name.
    """

    result: Result
    examples_per_step: int | None = None
    counts: Counts = field(default_factory=Counts)
    examples: int | None = None
    values: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._closed: set[tuple[int, datetime]] = set()
        # The counter must start at 0. Otherwise `rate` would miss the throttled time of the first process.
        self.counts = self._before = Counts(throttled=None if limits.throttling() is None else 0.0)
        self._latest: ProcessSample | None = None
        self.info = _info(self.result)

    def update(self) -> None:
        """Count the latest process again, on top of the processes before it.

        A process that is no longer among the samples (a profiler's) stays counted.
        """
        steps = self.counts.steps
        if self._latest is not None:
            self.counts = self._before + Counts.of(self._latest)
        for sample in self.result.samples:
            if sample is self._latest or _name(sample) in self._closed:
                continue
            if self._latest is not None:
                self._closed.add(_name(self._latest))
            self._before, self._latest = self.counts, sample
            self.counts = self._before + Counts.of(sample)
        if self.examples_per_step is not None:
            self.examples = (self.examples or 0) + (self.counts.steps - steps) * self.examples_per_step

    @property
    def state(self) -> str:
        """One of `STATES`."""
        if self.result.failure is not None:
            return "failed"
        return self.result.status if self.result.stop is not None else "running"

    @property
    def telemetry(self) -> Telemetry | None:
        """The telemetry of the latest process whose steady state has ended."""
        return next((sample.telemetry for sample in reversed(self.result.samples) if sample.telemetry), None)


def _name(sample: ProcessSample) -> tuple[int, datetime]:
    return sample.pid, sample.started


def _info(result: Result) -> dict[str, str]:
    spec, deployment = result.spec, result.environment.host.deployment
    labels: dict[str, Any] = {"workload": spec.title, **{name: getattr(spec, name) for name in SPEC_LABELS}}
    labels["workers"] = spec.workers.label if spec.workers else ""
    labels |= {name: getattr(result, name) for name in RESULT_LABELS}
    labels |= {name: getattr(deployment, name) for name in DEPLOYMENT_LABELS}
    return {name: str(value or "") for name, value in labels.items()}
