"""The points of a sweep as the rows and columns of a table, for the terminal and the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench.model.sweep import Curve, Sweep, rising
from bench.render import numbers
from bench.render.sentences.sweep import values


@dataclass(frozen=True)
class SweepColumn:
    """A column: its head and a cell for each row."""

    head: str
    cells: tuple[str, ...]


def row_labels(sweep: Sweep) -> list[str]:
    """Return the label of each row: the values of a point. The values rise from row to row."""
    return [values(point) for point in _points(sweep)]


def columns(sweep: Sweep) -> list[SweepColumn]:
    """Return a column for each curve. A curve that has ratios to a baseline has a second column for them."""
    points = _points(sweep)
    shown: list[SweepColumn] = []
    for curve in sweep.curves:
        shown.append(SweepColumn(curve.label, tuple(_figures(curve, point) for point in points)))
        if curve.ratios:
            unit = " per example" if any(ratio.unit == "example" for ratio in curve.ratios) else ""
            shown.append(SweepColumn(f"vs. {curve.base}{unit}", tuple(_ratio(curve, point) for point in points)))
    return shown


def _points(sweep: Sweep) -> list[dict[str, Any]]:
    """Return the values of every point that any curve has, rising."""
    points: dict[tuple[Any, ...], dict[str, Any]] = {}
    for curve in sweep.curves:
        for point in curve.points:
            points.setdefault(tuple(point.values.values()), point.values)
    return [points[key] for key in sorted(points, key=rising)]


def _figures(curve: Curve, values: dict[str, Any]) -> str:
    point = next((p for p in curve.points if p.values == values), None)
    if point is None:
        return "–"
    if point.step_seconds is None and not point.failure:
        return "not measured"
    if point.step_seconds is None:
        return "out of memory" if point.out_of_memory else "failed"
    rate = f" {numbers.quantity(point.examples_per_second.value, '')}/s" if point.examples_per_second else ""
    return f"{numbers.interval(point.step_seconds)}{rate}"


def _ratio(curve: Curve, values: dict[str, Any]) -> str:
    ratio = next((r for r in curve.ratios if r.values == values), None)
    return numbers.factor(ratio.ratio) if ratio else "–"
