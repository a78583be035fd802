"""The figures of a result: each is declared once, with its label, unit, text and metric.

The terminal's table, the report and the hub's metrics are made from this list, so a figure has one name everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.analyse import stats
from bench.analyse.samples import merged_facts, start_seconds, usable_samples
from bench.model.result import Interval, Placement, Profile, Result, Stop
from bench.render import numbers
from bench.render.field import Cell, Field

METRIC_PREFIX = "devbench_result_"
"""Prefix of the hub's metrics."""


def _status(result: Result) -> str:
    if result.status == "complete":
        return "complete"
    why = result.failure.kind if result.failure else result.stop.reason if result.stop else ""
    return result.status.upper() + (f": {why}" if why else "")


def _placement(placement: Placement) -> str:
    if placement.misplaced:
        elsewhere = ", ".join(sorted({each.device for each in placement.misplaced}))
        operations = numbers.count(len(placement.misplaced), "operation")
        return f"NOT on {placement.requested_device}: {operations} on {elsewhere}"
    if not placement.verified:
        return f"NOT VERIFIED on {placement.requested_device}"
    operations = f"all {placement.on_device:,} operations" if placement.on_device > 1 else "the only operation"
    return f"{placement.requested_device}, {operations}"


def _data(result: Result) -> str:
    data = result.spec.data
    name = f"{data.name}, " if data.name else ""
    kinds = {"full": "full set", "sample": "sample, repeated", "synthetic": "synthetic", "own": "the program's own"}
    return name + kinds[data.kind]


def _xla(result: Result) -> str | None:
    actual, asked = merged_facts(result.samples).jit_compile, result.spec.xla
    value = asked if actual is None else bool(actual)
    if value is None:
        return None
    text = "on" if value else "off"
    if asked is None:
        return f"{text}, chosen by the program"
    return text if value == asked else f"{text}, despite --xla {'on' if asked else 'off'}"


def _stop(stop: Stop) -> str:
    error = "" if stop.error is None else f", ±{numbers.percent(stop.error)}"
    target = "" if stop.target is None else f" of ±{numbers.percent(stop.target)}"
    goal, done = f"the target{target}", f"target{target} met"
    if stop.error_of == "ratio":
        goal, done = "a verdict", "verdict settled"
        error = "" if stop.error is None else f", ratio ±{numbers.percent(stop.error)}"
    why = {
        "target": f"{done}{error}",
        "max-time": f"--max-time reached before {goal}{error}",
        "max-processes": f"--max-processes reached before {goal}{error}",
        "failed": "a process failed",
        "interrupted": f"interrupted{error}",
    }[stop.reason]
    duration = "" if stop.seconds is None else f" in {numbers.time(stop.seconds)}"
    return f"{stop.trials}{duration}: {why}"


def _cold_start(result: Result) -> Interval | None:
    """Return the seconds from the start of a process to the end of its first step."""
    starts = list(start_seconds(usable_samples(result)).values())
    return stats.arithmetic(starts) if starts else None


def _measured(scope: str) -> Callable[[Result], tuple[float, float] | None]:
    """Return a reader of a whole training's seconds of one scope, and of the projection's relative error."""

    def read(result: Result) -> tuple[float, float] | None:
        projection = result.projection
        if projection is None or projection.full_training is None:
            return None
        truth: float = getattr(projection.full_training, scope)
        return truth, getattr(projection, scope).value / truth - 1

    return read


def _show_measured(measured: tuple[float, float]) -> str:
    truth, error = measured
    return f"{numbers.time(truth)} (projected {numbers.signed_percent(error)})"


def _outcome(result: Result) -> dict[str, float] | None:
    """Return loss, accuracy and the like at the end of a whole training."""
    return result.projection.full_training.metrics if result.projection and result.projection.full_training else None


def _series(result: Result) -> dict[str, tuple[Interval, float | None]]:
    """Return seconds and bytes/s of each series, for a workload that times something other than steps."""
    series = result.summary.series
    if set(series) <= {"step"}:
        return {}
    return {name: (seconds, result.summary.bytes_per_second.get(name)) for name, seconds in series.items()}


def _show_series(series: tuple[Interval, float | None]) -> str:
    seconds, bandwidth = series
    return numbers.interval(seconds) + (f", {numbers.quantity(bandwidth, 'B/s')}" if bandwidth else "")


def traced_shares(profile: Profile) -> dict[str, float]:
    """Return the parts of a traced step as shares."""
    shares = {
        "operations running": profile.device_share,
        "waiting for input": profile.input_share,
        "TensorFlow on the host": profile.host_share,
        "Python or waiting": profile.idle_share,
    }
    return {name: share for name, share in shares.items() if share is not None}


def longest_operations(profile: Profile, count: int = 3) -> str:
    """Return the operations that take longest in a traced step."""
    return ", ".join(f"{each.name} {numbers.time(each.seconds)}" for each in profile.operations[:count])


def _traced(read: Callable[[Profile], Any]) -> Callable[[Result], Any]:
    return lambda result: read(result.profile) if result.profile else None


def _quantity(unit: str) -> Callable[[float], str]:
    return lambda value: numbers.quantity(value, unit)


def _of(name: str) -> Callable[[Result], Any]:
    return lambda result: getattr(result.summary, name)


def _projected(name: str) -> Callable[[Result], Any]:
    return lambda result: getattr(result.projection, name) if result.projection else None


def _price(result: Result, amount: float | None) -> dict[str, float] | None:
    """Return an amount of money by its currency."""
    return {result.price.currency: amount} if result.price and amount is not None else None


def _misplaced(result: Result) -> int | None:
    return len(result.placement.misplaced) if result.placement else None


COLD, STEADY, SERIES = "cold start", "steady state", "series"
TRACED = "share of a traced step"
PROJECTED, MEASURED = "whole training, projected", "whole training, measured"

FIELDS: tuple[Field, ...] = (
    Field("status", "status", _status, str, brief="status", alarm=lambda text: text != "complete"),
    Field(
        "placement",
        "where it ran",
        lambda result: result.placement,
        _placement,
        brief="where it ran",
        alarm=lambda placement: not placement.verified,
    ),
    Field(
        "misplaced_operations",
        "misplaced operations",
        _misplaced,
        lambda count: str(count) if count else "",
        metric="misplaced_operations",
    ),
    Field("data", "data", _data),
    Field("xla", "XLA", _xla),
    Field("stop", "processes", lambda result: result.stop, _stop),
    Field("phases", "{}", _of("phases"), numbers.interval, COLD, "s", "phase_seconds", "phase"),
    Field("cold_start_seconds", "total until first step", _cold_start, numbers.interval, COLD, "s", brief="cold start"),
    Field(
        "step_seconds", "step", _of("step_seconds"), numbers.interval, STEADY, "s", "step_seconds", brief="step time"
    ),
    Field("step_seconds_mean", "step, mean", _of("step_seconds_mean"), numbers.interval, STEADY, "s"),
    Field("step_seconds_p50", "single step, p50", _of("step_seconds_p50"), numbers.time, STEADY, "s", "p50_seconds"),
    Field("step_seconds_p90", "single step, p90", _of("step_seconds_p90"), numbers.time, STEADY, "s", "p90_seconds"),
    Field("step_seconds_p99", "single step, p99", _of("step_seconds_p99"), numbers.time, STEADY, "s", "p99_seconds"),
    Field(
        "examples_per_second",
        "throughput",
        _of("examples_per_second"),
        _quantity("examples/s"),
        STEADY,
        "examples/s",
        "examples_per_second",
        brief="throughput",
    ),
    Field(
        "flops_per_second",
        "compute",
        _of("flops_per_second"),
        _quantity("FLOP/s"),
        STEADY,
        "FLOP/s",
        "flops_per_second",
    ),
    Field(
        "cost_per_1000_steps",
        "1,000 steps, {}",
        lambda result: _price(result, result.summary.cost_per_1000_steps),
        numbers.money,
        STEADY,
        "",
        "cost_per_1000_steps",
        "currency",
        brief="1,000 steps, {}",
    ),
    Field("traced", "{}", _traced(traced_shares), numbers.percent, TRACED, entry_label="part"),
    Field("traced_operations", "longest operations", _traced(longest_operations), str, TRACED),
    Field("series", "{}", _series, _show_series, SERIES, "s", entry_label="series", brief="{}"),
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
        lambda result: _price(result, result.projection.cost if result.projection else None),
        numbers.money,
        PROJECTED,
        entry_label="currency",
        brief="training cost, {}",
    ),
    Field(
        "measured_build_and_fit_seconds",
        "build and fit",
        _measured("build_and_fit_seconds"),
        _show_measured,
        MEASURED,
        "s",
        brief="measured training",
    ),
    Field("measured_total_seconds", "from a cold start", _measured("total_seconds"), _show_measured, MEASURED, "s"),
    Field("outcome", "{}", _outcome, lambda value: f"{value:.4g}", MEASURED, entry_label="name", brief="{}"),
)
"""In the order of the table."""


ABSENT = Cell("–")


@dataclass(frozen=True)
class FieldRow:
    """A row of a table: its heading, its label, and a cell for each result."""

    heading: str
    label: str
    cells: tuple[Cell, ...]

    @property
    def alarms(self) -> tuple[int, ...]:
        """Positions of the cells that report a problem."""
        return tuple(place for place, cell in enumerate(self.cells) if cell.alarm)


def rows(results: Sequence[Result], brief: bool = False) -> Iterator[FieldRow]:
    """Yield the rows of a table of results.

    Args:
        results: one for each column.
        brief: only the rows of the short table. It has the status only if one is a problem.
    """
    for field in FIELDS:
        if brief and not field.brief:
            continue
        columns = [field.cells(each, brief) for each in results]
        for label in _merged(columns):
            row = FieldRow("" if brief else field.heading, label, tuple(each.get(label, ABSENT) for each in columns))
            if not (brief and field.key == "status" and not row.alarms):
                yield row


def _merged(columns: Sequence[Iterable[str]]) -> list[str]:
    """Return all labels; each follows the label that precedes it in its own column."""
    order: list[str] = []
    for column in columns:
        place = 0
        for label in column:
            if label not in order:
                order.insert(place, label)
            place = order.index(label) + 1
    return order
