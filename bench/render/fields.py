"""The figures of a result: each is declared once, with its label, unit, text and metric.

The terminal's table, the report and the hub's metrics are made from this list, so a figure has one name everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.model.profile import Profile
from bench.model.result import Result
from bench.render import figures, numbers, trace
from bench.render.field import Field

METRIC_PREFIX = "devbench_result_"
"""Prefix of the hub's metrics."""


def _summary(name: str) -> Callable[[Result], Any]:
    return lambda result: getattr(result.summary, name)


def _projected(name: str) -> Callable[[Result], Any]:
    return lambda result: figures.projected(result, name)


def _measured(name: str) -> Callable[[Result], Any]:
    return lambda result: figures.measured(result, name)


def _traced(read: Callable[[Profile], Any]) -> Callable[[Result], Any]:
    return lambda result: read(result.profile) if result.profile else None


def _quantity(unit: str) -> Callable[[float], str]:
    return lambda value: numbers.quantity(value, unit)


COLD, STEADY, SERIES = "cold start", "steady state", "series"
TRACED = "share of a traced step"
PROJECTED, MEASURED = "whole training, projected", "whole training, measured"

FIELDS: tuple[Field, ...] = (
    Field("status", "status", figures.status, str, brief="status", alarm=lambda text: text != "complete"),
    Field(
        "placement",
        "where it ran",
        lambda result: result.placement,
        figures.place,
        brief="where it ran",
        alarm=lambda placement: not placement.verified,
    ),
    Field(
        "misplaced_operations",
        "misplaced operations",
        lambda result: len(result.placement.misplaced) if result.placement else None,
        lambda count: str(count) if count else "",
        metric="misplaced_operations",
    ),
    Field("data", "data", figures.data),
    Field("xla", "XLA", figures.xla),
    Field("stop", "processes", lambda result: result.stop, figures.processes),
    Field("phases", "{}", _summary("phases"), numbers.interval, COLD, "s", "phase_seconds", "phase"),
    Field(
        "cold_start_seconds",
        "total until first step",
        figures.cold_start,
        numbers.interval,
        COLD,
        "s",
        brief="cold start",
    ),
    Field(
        "step_seconds",
        "step",
        _summary("step_seconds"),
        numbers.interval,
        STEADY,
        "s",
        "step_seconds",
        brief="step time",
    ),
    Field("step_seconds_mean", "step, mean", _summary("step_seconds_mean"), numbers.interval, STEADY, "s"),
    Field(
        "step_seconds_p50", "single step, p50", _summary("step_seconds_p50"), numbers.time, STEADY, "s", "p50_seconds"
    ),
    Field(
        "step_seconds_p90", "single step, p90", _summary("step_seconds_p90"), numbers.time, STEADY, "s", "p90_seconds"
    ),
    Field(
        "step_seconds_p99", "single step, p99", _summary("step_seconds_p99"), numbers.time, STEADY, "s", "p99_seconds"
    ),
    Field(
        "examples_per_second",
        "throughput",
        _summary("examples_per_second"),
        _quantity("examples/s"),
        STEADY,
        "examples/s",
        "examples_per_second",
        brief="throughput",
    ),
    Field(
        "flops_per_second",
        "compute",
        _summary("flops_per_second"),
        _quantity("FLOP/s"),
        STEADY,
        "FLOP/s",
        "flops_per_second",
    ),
    Field(
        "cost_per_1000_steps",
        "1,000 steps, {}",
        lambda result: figures.price(result, result.summary.cost_per_1000_steps),
        numbers.money,
        STEADY,
        "",
        "cost_per_1000_steps",
        "currency",
        brief="1,000 steps, {}",
    ),
    Field("traced", "{}", _traced(trace.shares), numbers.percent, TRACED, entry_label="part"),
    Field("traced_operations", "longest operations", _traced(trace.longest_operations), str, TRACED),
    Field("series", "{}", figures.series, figures.series_text, SERIES, "s", entry_label="series", brief="{}"),
    Field(
        "projected_steps",
        "steps",
        lambda result: result.projection.steps if result.projection else None,
        lambda steps: f"{steps:,}",
        PROJECTED,
    ),
    Field(
        "build_and_fit_seconds",
        "build and fit",
        _projected("build_and_fit_seconds"),
        numbers.interval,
        PROJECTED,
        "s",
        "projected_seconds",
        metric_labels=(("scope", "build_and_fit"),),
        brief="projected training",
    ),
    Field(
        "total_seconds",
        "from a cold start",
        _projected("total_seconds"),
        numbers.interval,
        PROJECTED,
        "s",
        "projected_seconds",
        metric_labels=(("scope", "total"),),
    ),
    Field(
        "epoch_end_wait_seconds",
        "waits at epoch ends",
        lambda result: (result.projection.epoch_end_wait_seconds if result.projection else None) or None,
        numbers.time,
        PROJECTED,
        "s",
    ),
    Field(
        "cost",
        "cost, {}",
        lambda result: figures.price(result, result.projection.cost if result.projection else None),
        numbers.money,
        PROJECTED,
        entry_label="currency",
        brief="training cost, {}",
    ),
    Field(
        "measured_build_and_fit_seconds",
        "build and fit",
        _measured("build_and_fit_seconds"),
        figures.measured_text,
        MEASURED,
        "s",
        brief="measured training",
    ),
    Field(
        "measured_total_seconds", "from a cold start", _measured("total_seconds"), figures.measured_text, MEASURED, "s"
    ),
    Field(
        "outcome",
        "{}",
        figures.training_metrics,
        lambda value: f"{value:.4g}",
        MEASURED,
        entry_label="name",
        brief="{}",
    ),
)
"""In the order of the table."""
