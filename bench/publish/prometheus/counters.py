"""What is counted of a result as it grows: steps, examples, single steps by how long they took, time held back.

Counting goes on between blocks only, and takes some 20 µs: of the latest process everything, on top of all before it.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bench.machine import limits
from bench.model.result import ProcessSample, Result, Telemetry

BUCKETS = tuple(2.0**power * 1e-6 for power in range(27))
"""Upper bounds of the histogram in seconds: powers of two from 1 µs to 67 s."""

STATES = ("running", "complete", "partial", "failed")
OF_SPEC = ("backend", "loop", "dtype")
OF_RESULT = ("key", "group", "purpose", "parent", "devbench")
OF_PLACE = ("pool", "node", "instance_type", "image")
INFO = ("workload", *OF_SPEC, *OF_RESULT, *OF_PLACE)
"""Labels of `devbench_run_info`: known when a run begins, so that they stay the same throughout it."""


@dataclass(frozen=True)
class Counts:
    """What only grows.

    Args:
        steps: timed steps.
        throttled: seconds for which a CPU quota held the program back; none where that is not told.
        buckets: single steps by the bucket they fall into, the last being beyond all bounds.
        seconds: of all these single steps.
    """

    steps: int = 0
    throttled: float | None = None
    buckets: tuple[int, ...] = (0,) * (len(BUCKETS) + 1)
    seconds: float = 0.0

    @classmethod
    def of(cls, sample: ProcessSample) -> Counts:
        """Those of one process so far."""
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
        told = [each.throttled for each in (self, other) if each.throttled is not None]
        return Counts(
            steps=self.steps + other.steps,
            throttled=sum(told) if told else None,
            buckets=tuple(a + b for a, b in zip(self.buckets, other.buckets, strict=True)),
            seconds=self.seconds + other.seconds,
        )


@dataclass
class Run:
    """One result under way, and what is known of it.

    Args:
        result: it grows between two updates, and is not looked at elsewhere.
        per_step: examples of a step; none where a step has none.

    Attributes:
        counts: of all its processes.
        examples: counted along with the steps.
        info: what identifies it; known from the first, so that it stays the same.
        values: what each metric read at the last update, by its name.
    """

    result: Result
    per_step: int | None = None
    counts: Counts = field(default_factory=Counts)
    examples: int | None = None
    values: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._closed: set[tuple[int, datetime]] = set()
        # A counter begins at 0, or `rate` would take what the first process was held back for as where it stood before.
        self.counts = self._before = Counts(throttled=None if limits.throttling() is None else 0.0)
        self._latest: ProcessSample | None = None
        self.info = _info(self.result)

    def update(self) -> None:
        """Counts what is new: the latest process anew, on top of all before it.

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
        if self.per_step is not None:
            self.examples = (self.examples or 0) + (self.counts.steps - steps) * self.per_step

    @property
    def state(self) -> str:
        """One of `STATES`."""
        if self.result.failure is not None:
            return "failed"
        return self.result.status if self.result.stop is not None else "running"

    @property
    def telemetry(self) -> Telemetry | None:
        """Of the latest process that has come to the end of its steady state."""
        return next((each.telemetry for each in reversed(self.result.samples) if each.telemetry), None)


def _name(sample: ProcessSample) -> tuple[int, datetime]:
    return sample.pid, sample.started


def _info(result: Result) -> dict[str, str]:
    spec, deployment = result.spec, result.environment.host.deployment
    known: dict[str, Any] = {"workload": spec.title, **{name: getattr(spec, name) for name in OF_SPEC}}
    known |= {name: getattr(result, name) for name in OF_RESULT}
    known |= {name: getattr(deployment, name) for name in OF_PLACE}
    return {name: str(value or "") for name, value in known.items()}
