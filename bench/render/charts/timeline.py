"""A chart over time: a history of steps, and where its level changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bench.render.charts import drawing
from bench.render.charts.drawing import ACCENT, DASHED, DOT, HEIGHT, SECONDS, end, layer

CLOCK = {"hours": "%H:%M", "minutes": "%H:%M"}
"""Labels of ticks between days, as the tables have it: the library's own are those of a clock of twelve hours."""


@dataclass(frozen=True)
class Moment:
    """A point of `history`: when, and a step's seconds with their interval where there is one."""

    when: datetime
    value: float
    low: float | None
    high: float | None


def history(points: Sequence[Moment], changes: Sequence[int]) -> str:
    """Seconds over time; a dashed rule where a new level begins.

    Args:
        points: in the order of time, at least one.
        changes: places of the points with which a level begins.
    """
    rows: list[dict[str, Any]] = [
        {"x": each.when.isoformat(), "y": each.value, "low": each.low or each.value, "high": each.high or each.value}
        for each in points
    ]
    bounds = [row[end] for row in rows for end in ("low", "high")]
    spread = max(bounds) / min(bounds)
    margin = 1.1 if spread > 1.2 else 1 + spread / 20
    low, high = min(bounds) / margin, max(bounds) * margin
    ticks = drawing.decades(low, high)
    values: dict[str, Any] = {"values": ticks} if len(ticks) > 1 else {"tickCount": 4}
    y = drawing.on(
        drawing.logarithmic(low, high), {"title": None, "labelExpr": SECONDS, "labelOverlap": "greedy", **values}
    )
    apart = {"labelOverlap": "greedy", "labelSeparation": 12, "labelFlush": True}
    x_axis = {"title": None, "tickCount": 5, "format": CLOCK, **apart}
    x = {"field": "x", "type": "temporal", "scale": {"type": "utc"}, "axis": x_axis}
    layers = [
        layer("changes", "rule", {**DASHED, "strokeWidth": 2}, x=x),
        layer("points", "rule", {"color": ACCENT, "strokeWidth": 1.5}, x=x, y=y("low"), y2=end("high")),
        layer("points", "point", {**DOT, "size": 40}, x=x, y=y("y")),
    ]
    marked = [rows[place] for place in changes]
    return drawing.svg(layers, {"points": rows, "changes": marked}, 1, HEIGHT)
