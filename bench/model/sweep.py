"""A sweep: a curve for each backend or loop, and where one overtakes another."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from bench.model.comparison import Verdict
from bench.model.record import Record
from bench.model.result import Interval


class Point(Record):
    """One value of the swept parameters, on one curve."""

    values: dict[str, Any]
    id: str = Field(description="the result's id")
    step_seconds: Interval | None = None
    examples_per_second: float | None = None
    failure: str | None = Field(None, description="why there is no time, such as memory that ended")
    out_of_memory: bool = Field(False, description="whether it was memory that ended")


class CurveRatio(Record):
    """How two curves stand to each other at one value."""

    values: dict[str, Any]
    ratio: Interval = Field(description="time of the curve over that of its base, per step")
    verdict: Verdict


class Crossing(Record):
    """Where a curve overtakes its base, or that one it."""

    value: float = Field(
        description="of the swept parameter, between two measured values on a logarithmic scale, or on a linear one "
        "where the lower one is 0 or less"
    )
    low: float | None = Field(description="from here on it may be ahead; none where that is left of what was measured")
    high: float | None = Field(description="from here on it is ahead for sure; none where that was not measured")
    leader: str = Field(description="label of who is ahead to the right of it")


class Curve(Record):
    """One backend or loop along the sweep."""

    label: str
    points: list[Point]
    base: str | None = Field(None, description="label of the curve before it that is nearest, which its ratios are to")
    ratios: list[CurveRatio] = Field(default_factory=list)
    crossings: list[Crossing] = Field(default_factory=list)
    best_values: dict[str, Any] | None = Field(None, description="values with the most examples a second")


class Sweep(Record):
    """All of a sweep."""

    id: str
    workload: str
    axes: dict[str, list[Any]] = Field(description="swept parameter: the values measured, rising")
    threshold: float
    curves: list[Curve]
    incomplete_reason: str | None = Field(None, description="why not all values were measured")
