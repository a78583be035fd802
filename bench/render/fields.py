"""One table of what a result says: key, label, how it is read and shown, and its metric.

The terminal's table, the report and the metrics are all made from it, so a figure has one name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.analyse import stats
from bench.model.result import Interval, Placement, Profile, Result, Stop
from bench.render import numbers

METRIC_PREFIX = "devbench_result_"


@dataclass(frozen=True)
class Field:
    """One figure of a result.

    Args:
        key: its name, as in the document where it stands there.
        label: what the table calls it; where `each` is set, a format for the one name, such as "{}".
        read: takes it from a result: a number, an `Interval`, a text, or none; where `each` is set, a
            mapping from names to such.
        show: writes what `read` gave, for a person; an empty text is not shown.
        section: the heading it stands under.
        unit: its base unit; empty where it has none.
        metric: the hub's gauge, after `METRIC_PREFIX`; an interval has `…_low` and `…_high` beside it; none where
            it is no number.
        each: what tells several of this figure in one result apart, as the metric's label does.
        labels: fixed labels of the metric.
    """

    key: str
    label: str
    read: Callable[[Result], Any]
    show: Callable[[Any], str] = str
    section: str = ""
    unit: str = ""
    metric: str | None = None
    each: str | None = None
    labels: tuple[tuple[str, str], ...] = ()

    def rows(self, result: Result) -> dict[str, str]:
        """Label: text; one, several or none, as the result has them."""
        value = self.read(result)
        if self.each is not None:
            named = {self.label.format(name.replace("_", " ")): found for name, found in (value or {}).items()}
        else:
            named = {self.label: value}
        return {label: text for label, found in named.items() if found is not None and (text := self.show(found))}


def _status(result: Result) -> str:
    if result.status == "complete":
        return "complete"
    why = result.failure.kind if result.failure else result.stop.reason if result.stop else ""
    return result.status.upper() + (f": {why}" if why else "")


def _where(found: Placement) -> str:
    if found.misplaced:
        elsewhere = ", ".join(sorted({each.device for each in found.misplaced}))
        return f"NOT PROVED on {found.requested_device}: {len(found.misplaced)} operations on {elsewhere}"
    if not found.verified:
        return f"NOT PROVED on {found.requested_device}"
    return f"{found.requested_device}, {found.on_device} of {found.on_device + len(found.misplaced)} operations proved"


def _data(result: Result) -> str:
    data = result.spec.data
    name = f"{data.name}, " if data.name else ""
    kinds = {"full": "full set", "sample": "sample, repeated", "synthetic": "synthetic", "own": "the program's own"}
    return name + kinds[data.kind]


def _xla(result: Result) -> str | None:
    became = stats.facts(result.samples).jit_compile
    asked = result.spec.xla
    told = {True: "on", False: "off", None: None}[asked if became is None else bool(became)]
    if asked is None:
        return told and f"{told}, as the program decided"
    return told if became is None or bool(became) == asked else f"{told}, though --xla {'on' if asked else 'off'}"


def _stop(found: Stop) -> str:
    reached = "" if found.error is None else f", ±{numbers.percent(found.error)}"
    target = "" if found.target is None else f" of ±{numbers.percent(found.target)}"
    goal, done = f"target{target}", "met"
    if found.error_of == "ratio":
        goal, done = "a verdict", "settled"
        reached = "" if found.error is None else f", ratio ±{numbers.percent(found.error)}"
    why = {
        "target": f"{goal} {done}{reached}",
        "max-time": f"--max-time came before {goal}{reached}",
        "max-processes": f"--max-processes came before {goal}{reached}",
        "failed": "a process failed",
        "interrupted": f"interrupted{reached}",
    }[found.reason]
    after = "" if found.seconds is None else f" in {numbers.time(found.seconds)}"
    return f"{found.trials}{after}: {why}"


def _measured(scope: str) -> Callable[[Result], tuple[float, float] | None]:
    """Reads what a whole training took in one scope, and how far the projection was from it."""

    def read(result: Result) -> tuple[float, float] | None:
        projection = result.projection
        if projection is None or projection.full_training is None:
            return None
        truth: float = getattr(projection.full_training, scope)
        return truth, getattr(projection, scope).value / truth - 1

    return read


def _show_measured(found: tuple[float, float]) -> str:
    truth, off = found
    return f"{numbers.time(truth)} (projected {numbers.signed_percent(off)})"


def _outcome(result: Result) -> dict[str, float] | None:
    """Loss, accuracy and so on at the end of a whole training."""
    return result.projection.full_training.metrics if result.projection and result.projection.full_training else None


def _moved(result: Result) -> dict[str, tuple[Interval, float | None]]:
    """Seconds and bandwidth of each series, where it is not the steps that are timed."""
    series = result.summary.series
    if set(series) <= {"step"}:
        return {}
    return {name: (found, result.summary.bytes_per_second.get(name)) for name, found in series.items()}


def _show_moved(found: tuple[Interval, float | None]) -> str:
    seconds, bandwidth = found
    return numbers.interval(seconds) + (f", {numbers.quantity(bandwidth, 'B/s')}" if bandwidth else "")


def traced_shares(found: Profile) -> dict[str, float]:
    """How a traced step divides, in words."""
    shares = {
        "operations running": found.device_share,
        "waiting for input": found.input_share,
        "TensorFlow on the host": found.host_share,
        "Python, or waiting": found.idle_share,
    }
    return {name: share for name, share in shares.items() if share is not None}


def longest(found: Profile, most: int = 3) -> str:
    """The operations that took longest in a step."""
    return ", ".join(f"{each.name} {numbers.time(each.seconds)}" for each in found.operations[:most])


def _traced(read: Callable[[Profile], Any]) -> Callable[[Result], Any]:
    return lambda result: read(result.profile) if result.profile else None


def _quantity(unit: str) -> Callable[[float], str]:
    return lambda value: numbers.quantity(value, unit)


def _of(name: str) -> Callable[[Result], Any]:
    return lambda result: getattr(result.summary, name)


def _projected(name: str) -> Callable[[Result], Any]:
    return lambda result: getattr(result.projection, name) if result.projection else None


def _priced(result: Result, amount: float | None) -> dict[str, float] | None:
    """An amount of money under its currency."""
    return {result.price.currency: amount} if result.price and amount is not None else None


def _misplaced(result: Result) -> int | None:
    return len(result.placement.misplaced) if result.placement else None


COLD, STEADY, SERIES = "cold start", "steady state", "one by one"
TRACED = "of a step, traced"
PROJECTED, MEASURED = "whole training, projected", "whole training, measured"

FIELDS: tuple[Field, ...] = (
    Field("status", "status", _status),
    Field("placement", "where it ran", lambda result: result.placement, _where),
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
    Field("phases", "{}", lambda result: result.summary.phases, numbers.interval, COLD, "s", "phase_seconds", "phase"),
    Field("step_seconds", "step", _of("step_seconds"), numbers.interval, STEADY, "s", "step_seconds"),
    Field("step_seconds_mean", "step, mean", _of("step_seconds_mean"), numbers.interval, STEADY, "s"),
    Field("step_seconds_p50", "step alone, p50", _of("step_seconds_p50"), numbers.time, STEADY, "s", "p50_seconds"),
    Field("step_seconds_p90", "step alone, p90", _of("step_seconds_p90"), numbers.time, STEADY, "s", "p90_seconds"),
    Field("step_seconds_p99", "step alone, p99", _of("step_seconds_p99"), numbers.time, STEADY, "s", "p99_seconds"),
    Field(
        "examples_per_second",
        "throughput",
        _of("examples_per_second"),
        _quantity("examples/s"),
        STEADY,
        "examples/s",
        "examples_per_second",
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
        lambda result: _priced(result, result.summary.cost_per_1000_steps),
        numbers.money,
        STEADY,
        "",
        "cost_per_1000_steps",
        "currency",
    ),
    Field("traced", "{}", _traced(traced_shares), numbers.percent, TRACED, each="part"),
    Field("traced_operations", "longest", _traced(longest), str, TRACED),
    Field("series", "{}", _moved, _show_moved, SERIES, "s", each="series"),
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
        labels=(("scope", "build_and_fit"),),
    ),
    Field(
        "total_seconds",
        "from a cold start",
        _projected("total_seconds"),
        numbers.interval,
        PROJECTED,
        "s",
        "projected_seconds",
        labels=(("scope", "total"),),
    ),
    Field(
        "epoch_end_wait_seconds",
        "lost at epochs' ends",
        lambda result: (result.projection.epoch_end_wait_seconds if result.projection else None) or None,
        numbers.time,
        PROJECTED,
        "s",
    ),
    Field(
        "cost",
        "cost, {}",
        lambda result: _priced(result, result.projection.cost if result.projection else None),
        numbers.money,
        PROJECTED,
        each="currency",
    ),
    Field(
        "measured_build_and_fit_seconds",
        "build and fit",
        _measured("build_and_fit_seconds"),
        _show_measured,
        MEASURED,
        "s",
    ),
    Field("measured_total_seconds", "from a cold start", _measured("total_seconds"), _show_measured, MEASURED, "s"),
    Field("outcome", "{}", _outcome, lambda value: f"{value:.4g}", MEASURED, each="name"),
)
"""In the order of the table."""
