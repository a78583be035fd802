"""The series of a workload that times something other than steps, such as copies."""

from __future__ import annotations

from bench.model.interval import Interval
from bench.model.result import Result
from bench.render import numbers
from bench.render.fields.field import Field

HEADING = "series"


def _series(result: Result) -> dict[str, tuple[Interval, float | None]]:
    """Return seconds and bytes/s of each series; empty if the workload has steps."""
    seconds = result.summary.series
    if set(seconds) <= {"step"}:
        return {}
    return {name: (interval, result.summary.bytes_per_second.get(name)) for name, interval in seconds.items()}


def _text(figure: tuple[Interval, float | None]) -> str:
    """Return the time of a series, and its rate if it copies bytes."""
    seconds, rate = figure
    return numbers.interval(seconds) + (f", {numbers.quantity(rate, 'B/s')}" if rate else "")


FIELDS = (Field("series", "{}", _series, _text, HEADING, "s", entry_label="series", brief="{}"),)
