"""The metrics of what is under way, for Prometheus: each declared once, with how it is read from a run.

There are no `_created` series, and whatever the program is, a run has at most `MOST_SERIES` series.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.utils import floatToGoString

from bench.backends import capabilities
from bench.model.result import PHASES, Result, Telemetry
from bench.publish.prometheus.counters import BUCKETS, INFO, STATES, Counts, Run


def _phases(run: Run) -> dict[str, float]:
    """Their mean over processes, as the result has it; of the first process as they come."""
    means = {name: each.value for name, each in run.result.summary.phases.items()}
    found = means or (dict(run.result.samples[0].phases) if run.result.samples else {})
    return {name: found[name] for name in PHASES if name in found}


def _step(bound: str) -> Callable[[Run], float | None]:
    def read(run: Run) -> float | None:
        known = run.result.summary.step_seconds
        return None if known is None else getattr(known, bound)

    return read


def _device(of_gpu: str, of_cpu: Callable[[Telemetry, Result], float | None]) -> Callable[[Run], float | None]:
    def read(run: Run) -> float | None:
        found = run.telemetry
        if found is None:
            return None
        return getattr(found, of_gpu) if capabilities(run.result.spec.backend).gpu else of_cpu(found, run.result)

    return read


def _busy(found: Telemetry, result: Result) -> float | None:
    if found.cpu_seconds is None or not found.wall_seconds:
        return None
    return found.cpu_seconds / found.wall_seconds / result.spec.threads.intra


def _watts(found: Telemetry, result: Result) -> float | None:
    return found.package_joules / found.wall_seconds if found.package_joules and found.wall_seconds else None


@dataclass(frozen=True)
class Declared:
    """One metric.

    Args:
        name: as Prometheus stores it; a histogram's without `_bucket`.
        kind: its type; an info is a gauge of 1 in the older text format.
        help: what it is.
        read: takes it from a run: a number, none where it is not known, or by the value of `each`.
        each: the label beside `run` that tells several in one run apart.
        values: what that label may be.
        unit: its base unit. OpenMetrics carries it where the name ends in it.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram", "info"]
    help: str
    read: Callable[[Run], Any]
    each: str | None = None
    values: tuple[str, ...] = ()
    unit: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        """Its labels' names but for a bucket's `le`."""
        return ("run", *(INFO if self.kind == "info" else ()), *((self.each,) if self.each else ()))

    @property
    def family_name(self) -> str:
        """Without the suffix that its type adds."""
        return self.name.removesuffix({"counter": "_total", "info": "_info"}.get(self.kind, ""))

    @property
    def most(self) -> int:
        """How many series of it one run can have: a histogram's buckets, the one without bound, count and sum."""
        return len(BUCKETS) + 3 if self.kind == "histogram" else max(1, len(self.values))

    def family(self, runs: Mapping[str, Run]) -> Metric:
        """What these runs have of it."""
        made: Metric = self._empty()
        for name, run in runs.items():
            value = run.values[self.name]
            if isinstance(made, HistogramMetricFamily):
                made.add_metric([name], *_cumulative(value))
            elif isinstance(made, InfoMetricFamily):
                made.add_metric([name], value)
            elif isinstance(made, GaugeMetricFamily | CounterMetricFamily):
                several = {(): value} if self.each is None else {(label,): each for label, each in value.items()}
                for labels, each in several.items():
                    if each is not None:
                        made.add_metric([name, *labels], each)
        return made

    def _empty(self) -> Any:
        if self.kind == "info":
            return InfoMetricFamily(self.family_name, self.help, labels=["run"])
        kinds: dict[str, Any] = {
            "counter": CounterMetricFamily,
            "gauge": GaugeMetricFamily,
            "histogram": HistogramMetricFamily,
        }
        unit = self.unit if self.family_name.endswith(f"_{self.unit}") else ""
        return kinds[self.kind](self.family_name, self.help, labels=self.labels, unit=unit)


def _cumulative(counts: Counts) -> tuple[list[tuple[str, float]], float]:
    """A histogram's buckets as Prometheus has them, and its sum."""
    total, buckets = 0, []
    for bound, count in zip((*map(floatToGoString, BUCKETS), "+Inf"), counts.buckets, strict=True):
        total += count
        buckets.append((bound, float(total)))
    return buckets, counts.seconds


METRICS = (
    Declared(
        "devbench_run_info",
        "info",
        "What identifies a run; the other metrics join it by run. A label that does not apply is empty.",
        lambda run: run.info,
    ),
    Declared(
        "devbench_run_state",
        "gauge",
        "1 for the state that a run is in, 0 for the others.",
        lambda run: {state: float(state == run.state) for state in STATES},
        "state",
        STATES,
    ),
    Declared(
        "devbench_phase_seconds",
        "gauge",
        "Phases of a cold start and of a training, mean of the run's processes so far.",
        _phases,
        "phase",
        PHASES,
        unit="seconds",
    ),
    Declared(
        "devbench_steps_total",
        "counter",
        "Steps that were timed, those of the warm-up and of the latency pass included.",
        lambda run: run.counts.steps,
    ),
    Declared(
        "devbench_examples_total",
        "counter",
        "Examples in these steps; absent where a step has none.",
        lambda run: run.examples,
    ),
    Declared(
        "devbench_step_duration_seconds",
        "histogram",
        "Single steps of the latency pass, each synchronised, less what synchronising costs.",
        lambda run: run.counts,
        unit="seconds",
    ),
    Declared(
        "devbench_step_seconds",
        "gauge",
        "Typical step so far: of each process the median of its blocks, over processes their geometric mean.",
        _step("value"),
        unit="seconds",
    ),
    Declared(
        "devbench_step_seconds_low",
        "gauge",
        "Lower bound of its 95% interval in seconds; absent while there is one process only.",
        _step("low"),
        unit="seconds",
    ),
    Declared(
        "devbench_step_seconds_high",
        "gauge",
        "Upper bound of its 95% interval in seconds; absent while there is one process only.",
        _step("high"),
        unit="seconds",
    ),
    Declared(
        "devbench_device_utilization_ratio",
        "gauge",
        "Share of the latest process's steady state in which its GPU was busy; on a CPU, of its threads' time.",
        _device("gpu_utilization_ratio", _busy),
        unit="ratio",
    ),
    Declared(
        "devbench_device_memory_bytes",
        "gauge",
        "Most memory in use on the latest process's GPU; on a CPU, the most that the process ever held.",
        _device("gpu_memory_bytes", lambda found, result: found.peak_rss_bytes),
        unit="bytes",
    ),
    Declared(
        "devbench_device_power_watts",
        "gauge",
        "Mean power of the latest process's GPU; on a CPU, of its packages, whoever uses them. Absent if not told.",
        _device("gpu_power_watts", _watts),
        unit="watts",
    ),
    Declared(
        "devbench_cpu_throttled_seconds_total",
        "counter",
        "Time in the steady state for which a CPU quota held the run back, all CPUs together; absent if not told.",
        lambda run: run.counts.throttled,
        unit="seconds",
    ),
)
"""In the order of the reference page."""

MOST_SERIES = sum(each.most for each in METRICS)
