"""What Prometheus is told of a result: every figure of `output.fields` that has a metric, and what has no such row.

They are written when a result comes in, so that a scrape of thousands only puts lines together.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from bench.backends import capabilities
from bench.machine.environment import at
from bench.model.result import Interval, Result
from bench.render.fields import FIELDS, METRICS, Field
from bench.render.text import plain

HELP = {
    "info": "What identifies the latest result of each comparison key; its value is 1.",
    "timestamp_seconds": "When it was begun, in seconds since 1970.",
    "status": "1 for the status that it has, 0 for the others.",
    "step_seconds": "Seconds of the typical step.",
    "step_seconds_low": "Lower end of its 95% interval.",
    "step_seconds_high": "Upper end of its 95% interval.",
    "p50_seconds": "Seconds of a step alone, median.",
    "p90_seconds": "Seconds of a step alone, 90th percentile.",
    "p99_seconds": "Seconds of a step alone, 99th percentile.",
    "phase_seconds": "Seconds of a phase on a cold start.",
    "phase_seconds_low": "Lower end of its 95% interval.",
    "phase_seconds_high": "Upper end of its 95% interval.",
    "examples_per_second": "Examples a second.",
    "flops_per_second": "Floating point operations a second.",
    "projected_seconds": "Seconds of the whole training, projected, as `total` (from a cold start) or `build_and_fit`.",
    "projected_seconds_low": "Lower end of its 95% interval.",
    "projected_seconds_high": "Upper end of its 95% interval.",
    "transfer_bytes_per_second": "Bytes a second of the fastest copy, to the device (h2d) or from it (d2h).",
    "misplaced_operations": "Operations of a step that ran on another device than asked.",
    "energy_joules_per_step": "Joules of a mean step, of the GPU or of the CPU packages.",
    "cost_per_1000_steps": "What 1,000 steps cost.",
}
"""Metric after `METRICS`: its help. All are gauges."""

STATUSES = ("complete", "partial", "failed")


def lines(result: Result, key: str, program: str, pool: str) -> dict[str, str]:
    """Metric, after `METRICS`: its lines in Prometheus' text format.

    Args:
        result: what is told.
        key: its comparison key, the label by which all its lines are joined.
        program: names what was run, whatever the device.
        pool: where it ran.
    """
    found: dict[str, list[str]] = {}
    own = f'key="{escaped(key)}"'
    for metric, labels, value in _samples(result, program, pool):
        told = "".join([own, *(f',{name}="{escaped(text)}"' for name, text in labels.items())])
        found.setdefault(metric, []).append(f"{METRICS}{metric}{{{told}}} {number(value)}\n")
    return {metric: "".join(each) for metric, each in found.items()}


def number(value: float) -> str:
    """A value as the format writes it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value))


def escaped(text: str) -> str:
    """A label's value, escaped as the format asks for."""
    return plain(text)[:200].replace("\\", r"\\").replace('"', r"\"")


Sample = tuple[str, dict[str, str], float]


def _samples(result: Result, program: str, pool: str) -> Iterator[Sample]:
    yield "info", {**_identity(result, pool), "program": program}, 1
    yield "timestamp_seconds", {}, result.created.timestamp()
    for status in STATUSES:
        yield "status", {"status": status}, float(status == result.status)
    for field in FIELDS:
        if field.metric is not None:
            yield from _figures(field, field.read(result))
    for direction, rate in _transfers(result).items():
        yield "transfer_bytes_per_second", {"direction": direction}, rate
    joules = _energy(result)
    if joules is not None:
        yield "energy_joules_per_step", {}, joules


def _identity(result: Result, pool: str) -> dict[str, str]:
    spec = result.spec
    return {
        "result": result.id,
        "workload": spec.title,
        "backend": spec.backend,
        "loop": spec.loop,
        "pool": pool,
        "dtype": spec.dtype,
        "device": str(at(result.environment, ("device", "name")) or ""),
        "tensorflow": str(at(result.environment, ("framework", "tensorflow")) or ""),
        "devbench": result.devbench,
    }


def _figures(field: Field, value: Any) -> Iterator[Sample]:
    named = (value or {}).items() if field.each is not None else [("", value)]
    for name, one in named:
        labels = {**({field.each: name} if field.each else {}), **dict(field.labels)}
        metric = field.metric or ""
        if isinstance(one, Interval):
            yield metric, labels, one.value
            for end, bound in (("low", one.low), ("high", one.high)):
                if bound is not None:
                    yield f"{metric}_{end}", labels, bound
        elif one is not None:
            yield metric, labels, float(one)


def _transfers(result: Result) -> dict[str, float]:
    """The best bandwidth in each direction, of the series that `transfer` names by it."""
    found: dict[str, float] = {}
    for name, rate in result.summary.bytes_per_second.items():
        direction, slash, _ = name.partition("/")
        if slash and direction in ("h2d", "d2h"):
            found[direction] = max(rate, found.get(direction, 0.0))
    return found


def _energy(result: Result) -> float | None:
    """Joules of a mean step, by the power over the metered window.

    On the CPU these are its packages'; of a GPU its own, or none: a package's would be a small part of what it took.
    """
    gpu = capabilities(result.spec.backend).gpu
    found = []
    for sample in result.samples:
        read, blocks = sample.telemetry, [b for each in sample.series if each.name == "step" for b in each.blocks]
        steps = sum(block.steps for block in blocks)
        used = None if read is None else read.gpu_joules if gpu else read.package_joules
        if read is not None and used is not None and read.wall_seconds > 0 and steps:
            found.append(used / read.wall_seconds * sum(block.seconds for block in blocks) / steps)
    return statistics.fmean(found) if found else None


def help_lines(found: Mapping[str, str]) -> Iterator[str]:
    """The text of all metrics: help, type and lines of each.

    Args:
        found: metric, after `METRICS`: all its lines.
    """
    for metric, told in HELP.items():
        if metric in found:
            yield f"# HELP {METRICS}{metric} {told}\n# TYPE {METRICS}{metric} gauge\n"
            yield found[metric]
