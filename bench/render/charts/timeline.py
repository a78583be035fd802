"""A history of step times with its change points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bench.render.charts import vega
from bench.render.charts.vega import ACCENT, DASHED, DOT, HEIGHT, SECONDS, end, layer

CLOCK = {"hours": "%H:%M", "minutes": "%H:%M", "seconds": "%H:%M:%S", "milliseconds": "%H:%M:%S"}
"""Formats of the ticks within a day. Those of Vega-Lite use a 12-hour clock, unlike the tables, and show fractions of a
second."""


@dataclass(frozen=True)
class TimelinePoint:
    """One point: when the run started, and its step time in seconds with its interval if it has one."""

    started: datetime
    value: float
    low: float | None
    high: float | None


def draw(runs: Sequence[TimelinePoint], changes: Sequence[int]) -> str:
    """Draw step times over time, on a logarithmic axis, with a dashed line at each change point.

    Args:
        runs: in the order of time, at least one.
        changes: positions in `runs` of the change points.
    """
    rows: list[dict[str, Any]] = [
        {"x": run.started.isoformat(), "y": run.value, "low": run.low or run.value, "high": run.high or run.value}
        for run in runs
    ]
    bounds = [row[key] for row in rows for key in ("low", "high")]
    spread = max(bounds) / min(bounds)
    margin = 1.1 if spread > 1.2 else 1 + spread / 20
    low, high = min(bounds) / margin, max(bounds) * margin
    y_axis = {"title": None, "labelExpr": SECONDS, "labelOverlap": "greedy", **vega.ticks(low, high)}
    y = vega.on(vega.logarithmic(low, high), y_axis)
    apart = {"labelOverlap": "greedy", "labelSeparation": 12, "labelFlush": True}
    x_axis = {"title": None, "tickCount": 5, "format": CLOCK, **apart}
    x = {"field": "x", "type": "temporal", "scale": {"type": "utc"}, "axis": x_axis}
    layers = [
        layer("changes", "rule", {**DASHED, "strokeWidth": 2}, x=x),
        layer("runs", "rule", {"color": ACCENT, "strokeWidth": 1.5}, x=x, y=y("low"), y2=end("high")),
        layer("runs", "point", {**DOT, "size": 40}, x=x, y=y("y")),
    ]
    return vega.svg(layers, {"runs": rows, "changes": [rows[place] for place in changes]}, 1, HEIGHT)
