"""A sweep: a curve per backend, environment or loop, and where one overtakes another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import Field

from bench.model.comparison import Unit, Verdict
from bench.model.interval import Interval
from bench.model.record import Record
from bench.model.result import ResultWarning


def ordered(values: Iterable[Any]) -> tuple[tuple[bool, float, str], ...]:
    """Return the sort key of the values of a point: numbers rise and come before words and null."""
    return tuple(
        (False, float(value), "") if isinstance(value, (int, float)) else (True, 0.0, str(value)) for value in values
    )


class Point(Record):
    """One value of the swept parameters, on one curve."""

    values: dict[str, Any] = Field(description="swept parameter to its value")
    id: str = Field(description="id of the result")
    step_seconds: Interval | None = Field(None, description="typical step; null if the point failed")
    examples_per_second: Interval | None = Field(None, description="throughput at the typical step")
    failure: str | None = Field(None, description="why it failed")
    out_of_memory: bool = Field(False, description="whether it failed for lack of memory")


class CurveRatio(Record):
    """A curve against its base, at one value."""

    values: dict[str, Any] = Field(description="swept parameter to its value")
    ratio: Interval = Field(description="time of the curve over that of its base, per unit")
    unit: Unit = Field("step", description="what the ratio is per: an example if the steps of the two are unequal")
    verdict: Verdict = Field(description="verdict on the curve")


class Crossing(Record):
    """Where one of a curve and its base overtakes the other."""

    value: float = Field(
        description="value of the swept parameter, interpolated between measured values on a logarithmic scale, or on "
        "a linear one if the lower value is 0 or less"
    )
    low: float | None = Field(description="lower bound of the value; null if it is below what was measured")
    high: float | None = Field(description="upper bound of the value; null if it is above what was measured")
    leader: str = Field(description="label of the curve that is ahead at larger values")


class Curve(Record):
    """One backend, environment or loop along the sweep."""

    label: str = Field(description="case, backend, environment and loop")
    points: list[Point] = Field(description="its points, by rising values")
    base: str | None = Field(None, description="label of the curve that its ratios are against")
    ratios: list[CurveRatio] = Field(default_factory=list, description="ratios where both curves have a step time")
    crossings: list[Crossing] = Field(default_factory=list, description="where the two overtake each other")
    best: list[dict[str, Any]] = Field(
        default_factory=list,
        description="values that may have the highest throughput, the highest first; several if their intervals "
        "overlap, all if one was measured in a single process",
    )


class Sweep(Record):
    """All points of a sweep."""

    id: str = Field(description="id that its results have as their parent")
    workload: str = Field(description="name of the workload")
    axes: dict[str, list[Any]] = Field(description="swept parameter to the values measured, rising")
    threshold: float = Field(description="smallest relative difference that matters")
    curves: list[Curve] = Field(description="one per case, backend, environment and loop")
    warnings: list[ResultWarning] = Field(default_factory=list, description="warnings of its points, one of each kind")
    incomplete_reason: str | None = Field(None, description="why not all values were measured")
