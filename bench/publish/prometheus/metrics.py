"""The Prometheus metrics of a run. Each is declared once, with the function that reads it from a run.

There are no `_created` series. A run has at most `MAX_SERIES` series, whatever the program is.
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
from bench.model.phase import PHASES, Phase
from bench.model.result import Result
from bench.model.telemetry import Telemetry
from bench.publish.prometheus.counters import BUCKETS, INFO, STATES, Counts, Run


def _phases(run: Run) -> dict[Phase, float]:
    """Return the phases: their means over processes, or those of the first process while it runs."""
    means = {name: interval.value for name, interval in run.result.summary.phases.items()}
    phases = means or (dict(run.result.samples[0].phases) if run.result.samples else {})
    return {name: phases[name] for name in PHASES if name in phases}


def _step(bound: str) -> Callable[[Run], float | None]:
    def read(run: Run) -> float | None:
        interval = run.result.summary.step_seconds
        return None if interval is None else getattr(interval, bound)

    return read


def _device(of_gpu: str, of_cpu: Callable[[Telemetry, Result], float | None]) -> Callable[[Run], float | None]:
    def read(run: Run) -> float | None:
        telemetry = run.telemetry
        if telemetry is None:
            return None
        on_gpu = capabilities(run.result.spec.backend).gpu
        return getattr(telemetry, of_gpu) if on_gpu else of_cpu(telemetry, run.result)

    return read


def _cpu_utilization(telemetry: Telemetry, result: Result) -> float | None:
    if telemetry.cpu_seconds is None or not telemetry.wall_seconds:
        return None
    return telemetry.cpu_seconds / telemetry.wall_seconds / result.spec.threads.intra


def _package_watts(telemetry: Telemetry, result: Result) -> float | None:
    if not telemetry.package_joules or not telemetry.wall_seconds:
        return None
    return telemetry.package_joules / telemetry.wall_seconds


@dataclass(frozen=True)
class RunMetric:
    """One metric.

    Args:
        name: Name as Prometheus stores it, for a histogram without `_bucket`.
        kind: Type. An info is a gauge of 1 in the older text format.
        help: Help text.
        read: Reads the value from a run. None if it is not known. With a `label`, a dict from its values to numbers.
        label: Label besides `run`, if a run has several series.
        values: All values of that label.
        unit: Base unit. OpenMetrics states it if the name ends with it.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram", "info"]
    help: str
    read: Callable[[Run], Any]
    label: str | None = None
    values: tuple[str, ...] = ()
    unit: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its labels, without the `le` of a bucket."""
        return ("run", *(INFO if self.kind == "info" else ()), *((self.label,) if self.label else ()))

    @property
    def family_name(self) -> str:
        """The name without the suffix that its type adds."""
        return self.name.removesuffix({"counter": "_total", "info": "_info"}.get(self.kind, ""))

    @property
    def max_series(self) -> int:
        """The number of series that a run can have. A histogram has its buckets, `+Inf`, count and sum."""
        return len(BUCKETS) + 3 if self.kind == "histogram" else max(1, len(self.values))

    def family(self, runs: Mapping[str, Run]) -> Metric:
        """Return this metric of some runs."""
        family: Metric = self._empty()
        for run_id, run in runs.items():
            value = run.values[self.name]
            if isinstance(family, HistogramMetricFamily):
                family.add_metric([run_id], *_cumulative(value))
            elif isinstance(family, InfoMetricFamily):
                family.add_metric([run_id], value)
            elif isinstance(family, GaugeMetricFamily | CounterMetricFamily):
                numbers = {(): value} if self.label is None else {(label,): number for label, number in value.items()}
                for labels, number in numbers.items():
                    if number is not None:
                        family.add_metric([run_id, *labels], number)
        return family

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
    """Return a histogram's cumulative buckets and its sum."""
    total, buckets = 0, []
    for bound, count in zip((*map(floatToGoString, BUCKETS), "+Inf"), counts.buckets, strict=True):
        total += count
        buckets.append((bound, float(total)))
    return buckets, counts.seconds


METRICS = (
    RunMetric(
        "devbench_run_info",
        "info",
        "Identifies a run. Join it to other metrics on the label run. A label that does not apply is empty.",
        lambda run: run.info,
    ),
    RunMetric(
        "devbench_run_state",
        "gauge",
        "1 for the state of the run (running, complete, partial or failed), 0 for the others.",
        lambda run: {state: float(state == run.state) for state in STATES},
        "state",
        STATES,
    ),
    RunMetric(
        "devbench_phase_seconds",
        "gauge",
        "Time of a phase of a cold start or an epoch in seconds, mean over processes so far.",
        _phases,
        "phase",
        PHASES,
        unit="seconds",
    ),
    RunMetric(
        "devbench_steps_total",
        "counter",
        "Timed steps, including the warm-up and the latency pass.",
        lambda run: run.counts.steps,
    ),
    RunMetric(
        "devbench_examples_total",
        "counter",
        "Examples in the timed steps. Absent if steps have none.",
        lambda run: run.examples,
    ),
    RunMetric(
        "devbench_step_duration_seconds",
        "histogram",
        "Time of a synchronized step in the latency pass in seconds, without the synchronization.",
        lambda run: run.counts,
        unit="seconds",
    ),
    RunMetric(
        "devbench_step_seconds",
        "gauge",
        "Typical step time so far in seconds: median of blocks, geometric mean over processes.",
        _step("value"),
        unit="seconds",
    ),
    RunMetric(
        "devbench_step_seconds_low",
        "gauge",
        "Lower bound of its 95% interval in seconds. Absent while there is only one process.",
        _step("low"),
        unit="seconds",
    ),
    RunMetric(
        "devbench_step_seconds_high",
        "gauge",
        "Upper bound of its 95% interval in seconds. Absent while there is only one process.",
        _step("high"),
        unit="seconds",
    ),
    RunMetric(
        "devbench_device_utilization_ratio",
        "gauge",
        "Share of the steady state in which the GPU was busy (on a CPU: its threads). Latest process.",
        _device("gpu_utilization_ratio", _cpu_utilization),
        unit="ratio",
    ),
    RunMetric(
        "devbench_device_memory_bytes",
        "gauge",
        "Highest GPU memory use in bytes; on a CPU, highest memory use of the process. Latest process.",
        _device("gpu_memory_bytes", lambda telemetry, result: telemetry.peak_rss_bytes),
        unit="bytes",
    ),
    RunMetric(
        "devbench_device_power_watts",
        "gauge",
        "Mean power of the GPU in watts; on a CPU, of its packages, including other programs. Latest process.",
        _device("gpu_power_watts", _package_watts),
        unit="watts",
    ),
    RunMetric(
        "devbench_cpu_throttled_seconds_total",
        "counter",
        "Throttled time in the steady state in seconds, summed over CPUs. Absent if unknown.",
        lambda run: run.counts.throttled,
        unit="seconds",
    ),
)
"""All metrics, in the order of the documentation."""

MAX_SERIES = sum(metric.max_series for metric in METRICS)
"""The most series that a run can have."""
