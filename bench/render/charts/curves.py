"""A sweep's curves: step time over a parameter, and where the curves cross."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.render.charts import vega
from bench.render.charts.vega import ACCENT, BAND, DASHED, HEIGHT, LEGEND, PLAIN, SECONDS, end, layer, word

COLOURS = (ACCENT, "#d55e00", "#009e73", "#cc79a7", "#a06000", "#56b4e9")
"""One for each curve. More curves than colours cannot be drawn."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


@dataclass(frozen=True)
class Line:
    """A curve. A point has the parameter's value, the seconds, and the bounds of the seconds (None if unknown)."""

    label: str
    points: Sequence[tuple[float, float, float | None, float | None]]


@dataclass(frozen=True)
class CrossingMark:
    """The value of the parameter at which two curves cross, and the bounds of its interval (None if open)."""

    value: float
    low: float | None
    high: float | None


def draw(lines: Sequence[Line], parameter: str, crossings: Sequence[CrossingMark]) -> str:
    """Draw curves on two logarithmic axes, with a vertical line at each crossing and a band for its interval.

    Args:
        lines: at least one, and at most `len(COLOURS)`.
        parameter: title of the x axis.
        crossings: any number.
    """
    rows: list[dict[str, Any]] = [
        {"label": line.label, "x": x, "y": y, "low": y if low is None else low, "high": y if high is None else high}
        for line in lines
        for x, y, low, high in line.points
    ]
    xs, ys = [row["x"] for row in rows], [row[key] for row in rows for key in ("low", "high")]
    labels = [line.label for line in lines]
    values = sorted(set(xs))[:: max(1, len(set(xs)) // 7)]
    x_axis = {"title": parameter, "values": values, "labelExpr": PLAIN, "labelOverlap": "greedy"}
    y_axis = {"title": None, "labelExpr": SECONDS, **vega.ticks(min(ys) / 1.1, max(ys) * 1.1)}
    x, y = (
        vega.on(vega.logarithmic(min(ends) / 1.1, max(ends) * 1.1), axis) for ends, axis in ((xs, x_axis), (ys, y_axis))
    )
    colour = word("label", scale={"domain": labels, "range": COLOURS[: len(labels)]}, legend=LEGEND)
    shape = word("label", scale={"domain": labels, "range": SHAPES[: len(labels)]}, legend=LEGEND)
    least, most = min(xs), max(xs)
    marks = [{"at": c.value, "low": max(least, c.low or least), "high": min(most, c.high or most)} for c in crossings]
    dot = {"size": 60, "filled": True, "opacity": 1}
    layers = [
        layer("crossings", "rect", {"color": BAND}, x=x("low"), x2=end("high")),
        layer("crossings", "rule", {**DASHED, "strokeWidth": 2}, x=x("at")),
        layer("points", "rule", {"strokeWidth": 1.5}, x=x("x"), y=y("low"), y2=end("high"), color=colour),
        layer("points", "line", {"strokeWidth": 2}, x=x("x"), y=y("y"), color=colour),
        layer("points", "point", dot, x=x("x"), y=y("y"), color=colour, shape=shape),
    ]
    return vega.svg(layers, {"points": rows, "crossings": marks}, 1, HEIGHT)
