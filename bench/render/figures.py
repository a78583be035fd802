"""Figures of a result that are not simply a field of its document, or that have a text of their own.

`fields` declares where each of them is shown.
"""

from __future__ import annotations

from bench.analyse import stats
from bench.analyse.samples import merged_facts, start_seconds, usable_samples
from bench.model.interval import Interval
from bench.model.placement import Placement
from bench.model.result import Result, Stop
from bench.render import numbers

DATA = {"full": "full set", "sample": "sample, repeated", "synthetic": "synthetic", "own": "the program's own"}
"""Kinds of data in words."""


def status(result: Result) -> str:
    """Return the status, and the reason unless the result is complete."""
    if result.status == "complete":
        return "complete"
    reason = result.failure.kind if result.failure else result.stop.reason if result.stop else ""
    return result.status.upper() + (f": {reason}" if reason else "")


def place(placement: Placement) -> str:
    """Return the outcome of the placement check."""
    if placement.misplaced:
        devices = ", ".join(sorted({operation.device for operation in placement.misplaced}))
        operations = numbers.count(len(placement.misplaced), "operation")
        return f"NOT on {placement.requested_device}: {operations} on {devices}"
    if not placement.verified:
        return f"NOT VERIFIED on {placement.requested_device}"
    operations = f"all {placement.on_device:,} operations" if placement.on_device > 1 else "the only operation"
    return f"{placement.requested_device}, {operations}"


def data(result: Result) -> str:
    """Return the name and the kind of the data."""
    source = result.spec.data
    return ", ".join(filter(None, (source.name, DATA[source.kind])))


def xla(result: Result) -> str | None:
    """Say whether XLA compiled the step, and who decided that. None if unknown."""
    actual, requested = merged_facts(result.samples).jit_compile, result.spec.xla
    value = requested if actual is None else bool(actual)
    if value is None:
        return None
    text = "on" if value else "off"
    if requested is None:
        return f"{text}, chosen by the program"
    return text if value == requested else f"{text}, despite --xla {'on' if requested else 'off'}"


def processes(stop: Stop) -> str:
    """Return the number of processes, and why there are no more."""
    error = "" if stop.error is None else f", ±{numbers.percent(stop.error)}"
    target = "" if stop.target is None else f" of ±{numbers.percent(stop.target)}"
    goal, success = f"the target{target}", f"target{target} met"
    if stop.error_of == "ratio":
        goal, success = "a verdict", "verdict settled"
        error = "" if stop.error is None else f", ratio ±{numbers.percent(stop.error)}"
    reason = {
        "target": f"{success}{error}",
        "max-time": f"--max-time reached before {goal}{error}",
        "max-processes": f"--max-processes reached before {goal}{error}",
        "failed": "a process failed",
        "interrupted": f"interrupted{error}",
    }[stop.reason]
    duration = "" if stop.seconds is None else f" in {numbers.time(stop.seconds)}"
    return f"{stop.trials}{duration}: {reason}"


def cold_start(result: Result) -> Interval | None:
    """Return the seconds from the start of a process to the end of its first step."""
    starts = list(start_seconds(usable_samples(result)).values())
    return stats.arithmetic(starts) if starts else None


def projected(result: Result, name: str) -> Interval | None:
    """Return a figure of the projection in seconds. None if there is no projection."""
    return getattr(result.projection, name) if result.projection else None


def measured(result: Result, name: str) -> tuple[float, float] | None:
    """Return a figure of the full training in seconds, and the projection's relative error. None if none was run."""
    projection = result.projection
    if projection is None or projection.full_training is None:
        return None
    seconds: float = getattr(projection.full_training, name)
    return seconds, getattr(projection, name).value / seconds - 1


def measured_text(figure: tuple[float, float]) -> str:
    """Return a figure of the full training beside the error of the projection."""
    seconds, error = figure
    return f"{numbers.time(seconds)} (projected {numbers.signed_percent(error)})"


def training_metrics(result: Result) -> dict[str, float] | None:
    """Return loss, accuracy and the like at the end of the full training. None if none was run."""
    return result.projection.full_training.metrics if result.projection and result.projection.full_training else None


def series(result: Result) -> dict[str, tuple[Interval, float | None]]:
    """Return seconds and bytes/s of each series, for a workload that times something other than steps."""
    seconds = result.summary.series
    if set(seconds) <= {"step"}:
        return {}
    return {name: (interval, result.summary.bytes_per_second.get(name)) for name, interval in seconds.items()}


def series_text(figure: tuple[Interval, float | None]) -> str:
    """Return the time of a series, and its rate if it copies bytes."""
    seconds, rate = figure
    return numbers.interval(seconds) + (f", {numbers.quantity(rate, 'B/s')}" if rate else "")


def price(result: Result, amount: float | None) -> dict[str, float] | None:
    """Return an amount of money by its currency. None if the result has no price."""
    return {result.price.currency: amount} if result.price and amount is not None else None
