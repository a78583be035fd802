"""The Prometheus gauges of a result: every field of `render.fields` that has a metric, and a few more.

Their lines are written when a result arrives, so that a scrape of thousands of results only joins them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from bench.analyse.energy import joules_per_step
from bench.hub.db.scaling_key import scaling_key
from bench.model.interval import Interval
from bench.model.result import RESULT_STATUSES, Result
from bench.model.series import direction_of
from bench.render.fields import FIELDS, METRIC_PREFIX
from bench.render.fields.field import Field
from bench.render.text import plain

HELP = {
    "info": "Identifies the latest result of each comparison key. Always 1.",
    "timestamp_seconds": "Start of the measurement, in seconds since 1970.",
    "status": "1 for the status of the result (complete, partial or failed), 0 for the others.",
    "step_seconds": "Typical step time in seconds.",
    "step_seconds_low": "Lower bound of its 95% interval.",
    "step_seconds_high": "Upper bound of its 95% interval.",
    "p50_seconds": "Median time of a synchronized step in seconds.",
    "p90_seconds": "90th percentile of the time of a synchronized step in seconds.",
    "p99_seconds": "99th percentile of the time of a synchronized step in seconds.",
    "phase_seconds": "Time of a cold-start phase in seconds.",
    "phase_seconds_low": "Lower bound of its 95% interval.",
    "phase_seconds_high": "Upper bound of its 95% interval.",
    "workers": "Number of workers of a run of a scaling study, absent for other results.",
    "examples_per_second": "Examples per second.",
    "epoch_examples_per_second": "Examples per second over whole epochs, with the waits at their ends.",
    "flops_per_second": "Floating-point operations per second.",
    "projected_seconds": "Projected seconds of the whole training: `total` from a cold start, or `build_and_fit`.",
    "projected_seconds_low": "Lower bound of its 95% interval.",
    "projected_seconds_high": "Upper bound of its 95% interval.",
    "transfer_bytes_per_second": "Highest copy rate in bytes per second, to (h2d) or from (d2h) the device.",
    "misplaced_operations": "Operations of a step that did not run on the requested device.",
    "energy_joules_per_step": "Mean energy of a step in joules, of the GPU or of the CPU packages.",
    "cost_per_1000_steps": "Cost of 1,000 steps.",
    "silenced": "1 if alerts ignore the result, absent otherwise.",
}
"""The help text of each metric, by its name without `METRIC_PREFIX`. All metrics are gauges."""


def lines(result: Result, key: str, program: str, pool: str) -> dict[str, str]:
    """Return a result's lines in Prometheus' text format, by metric without `METRIC_PREFIX`.

    Args:
        result: the result.
        key: its comparison key, the label that joins all its lines.
        program: identifies what ran, whatever the device.
        pool: where it ran.
    """
    lines_of: dict[str, list[str]] = {}
    key_label = f'key="{escaped(key)}"'
    for metric, labels, value in _samples(result, program, pool):
        text = ",".join([key_label, *(f'{name}="{escaped(label)}"' for name, label in labels.items())])
        lines_of.setdefault(metric, []).append(f"{METRIC_PREFIX}{metric}{{{text}}} {number(value)}\n")
    return {metric: "".join(parts) for metric, parts in lines_of.items()}


def silenced(key: str) -> str:
    """Return the line of a result that alerts ignore, by its comparison key."""
    return f'{METRIC_PREFIX}silenced{{key="{escaped(key)}"}} {number(1)}\n'


def number(value: float) -> str:
    """Return a value as Prometheus' text format writes it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value))


def escaped(label: str) -> str:
    """Return a label's value, escaped for Prometheus' text format."""
    return plain(label)[:200].replace("\\", r"\\").replace('"', r"\"")


Sample = tuple[str, dict[str, str], float]
"""Metric, labels and value."""


def _samples(result: Result, program: str, pool: str) -> Iterator[Sample]:
    yield "info", {**_identity(result, pool), "program": program}, 1
    yield "timestamp_seconds", {}, result.created.timestamp()
    if result.spec.workers is not None:
        yield "workers", {}, float(result.spec.workers.count)
    for status in RESULT_STATUSES:
        yield "status", {"status": status}, float(status == result.status)
    for field in FIELDS:
        if field.metric is not None:
            yield from _field_samples(field, field.read(result))
    for direction, rate in _transfer_rates(result).items():
        yield "transfer_bytes_per_second", {"direction": direction}, rate
    joules = joules_per_step(result)
    if joules is not None:
        yield "energy_joules_per_step", {}, joules


def _identity(result: Result, pool: str) -> dict[str, str]:
    spec, device = result.spec, result.environment.device
    return {
        "result": result.id,
        "workload": spec.title,
        "backend": spec.backend,
        "loop": spec.loop,
        "workers": spec.workers.label if spec.workers else "",
        "scaling_key": scaling_key(spec) if spec.workers else "",
        "pool": pool,
        "dtype": spec.dtype,
        "device": (device.name if device else None) or "",
        "tensorflow": result.environment.tensorflow or "",
        "devbench": result.devbench,
    }


def _field_samples(field: Field, value: Any) -> Iterator[Sample]:
    named = (value or {}).items() if field.entry_label is not None else [("", value)]
    for name, figure in named:
        labels = {**({field.entry_label: name} if field.entry_label else {}), **dict(field.metric_labels)}
        metric = field.metric or ""
        if isinstance(figure, Interval):
            yield metric, labels, figure.value
            for end, bound in (("low", figure.low), ("high", figure.high)):
                if bound is not None:
                    yield f"{metric}_{end}", labels, bound
        elif figure is not None:
            yield metric, labels, float(figure)


def _transfer_rates(result: Result) -> dict[str, float]:
    """Return the highest rate in each direction, of the copies that `transfer` timed."""
    rates: dict[str, float] = {}
    for name, rate in result.summary.bytes_per_second.items():
        direction = direction_of(name)
        if direction is not None:
            rates[direction] = max(rate, rates.get(direction, 0.0))
    return rates


def exposition(lines_of: Mapping[str, str]) -> Iterator[str]:
    """Yield the text of all metrics: help, type and lines of each.

    Args:
        lines_of: all lines of each metric, by its name without `METRIC_PREFIX`.
    """
    for metric, text in HELP.items():
        if metric in lines_of:
            yield f"# HELP {METRIC_PREFIX}{metric} {text}\n# TYPE {METRIC_PREFIX}{metric} gauge\n"
            yield lines_of[metric]
