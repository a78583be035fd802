"""Charts over an axis: a sweep's curves with where they cross, and a step under its roofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.render import numbers
from bench.render.charts import drawing
from bench.render.charts.drawing import (
    ACCENT,
    BAND,
    BESIDE,
    DASHED,
    DOT,
    HEIGHT,
    MUTED,
    SECONDS,
    end,
    layer,
    number,
    word,
)

LINES = (ACCENT, "#d55e00", "#009e73", "#cc79a7", "#a06000", "#56b4e9")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
LEGEND = {"title": None, "orient": "top", "labelLimit": 0, "columnPadding": 24}


@dataclass(frozen=True)
class Line:
    """A line of `curves`: its name, and x, y and the bounds of y, where they are known, of each point."""

    name: str
    points: Sequence[tuple[float, float, float | None, float | None]]


@dataclass(frozen=True)
class Crossing:
    """Where two lines of `curves` cross, with its interval where that is bounded."""

    value: float
    low: float | None
    high: float | None


def curves(lines: Sequence[Line], along: str, crossings: Sequence[Crossing]) -> str:
    """Seconds over a parameter, both logarithmic; a rule where one line crosses another, its interval as a band."""
    rows: list[dict[str, Any]] = [
        {"name": each.name, "x": x, "y": y, "low": y if low is None else low, "high": y if high is None else high}
        for each in lines
        for x, y, low, high in each.points
    ]
    xs, ys = [row["x"] for row in rows], [row[key] for row in rows for key in ("low", "high")]
    names = [each.name for each in lines]
    values = sorted(set(xs))[:: max(1, len(set(xs)) // 7)]
    x_axis = {"title": along, "values": values, "labelExpr": "format(datum.value, '~s')", "labelOverlap": "greedy"}
    y_axis = {"title": None, "values": drawing.decades(min(ys) / 1.1, max(ys) * 1.1), "labelExpr": SECONDS}
    x, y = (
        drawing.on(drawing.logarithmic(min(ends) / 1.1, max(ends) * 1.1), axis)
        for ends, axis in ((xs, x_axis), (ys, y_axis))
    )
    colour = word("name", scale={"domain": names, "range": LINES[: len(names)]}, legend=LEGEND)
    shape = word("name", scale={"domain": names, "range": SHAPES[: len(names)]}, legend=LEGEND)
    least, most = min(xs), max(xs)
    marks = [{"at": c.value, "low": max(least, c.low or least), "high": min(most, c.high or most)} for c in crossings]
    layers = [
        layer("crossings", "rect", {"color": BAND}, x=x("low"), x2=end("high")),
        layer("crossings", "rule", {**DASHED, "strokeWidth": 2}, x=x("at")),
        layer("points", "rule", {"strokeWidth": 1.5}, x=x("x"), y=y("low"), y2=end("high"), color=colour),
        layer("points", "line", {"strokeWidth": 2}, x=x("x"), y=y("y"), color=colour),
        layer(
            "points", "point", {"size": 60, "filled": True, "opacity": 1}, x=x("x"), y=y("y"), color=colour, shape=shape
        ),
    ]
    return drawing.svg(layers, {"points": rows, "crossings": marks}, 1, HEIGHT)


def roofline(intensity: float, attained: float, roofs: Sequence[tuple[str, float, float]], compute: float) -> str:
    """A point under its roofs: operations a second over operations a byte, both logarithmic.

    Args:
        intensity: operations a byte, of the point.
        attained: operations a second, of the point.
        roofs: name and bytes a second of each memory, with the operations a second that it allows the point.
        compute: operations a second that the device attains at most.
    """
    knees = [compute / bandwidth for _, bandwidth, _ in roofs]
    low, high = min([intensity, *knees]) / 8, max([intensity, *knees]) * 8
    slopes = [
        {"name": name, "x": x, "y": min(compute, x * bandwidth)}
        for name, bandwidth, _ in roofs
        for x in (low, compute / bandwidth, high)
    ]
    ys: list[float] = [attained, *(min(compute, each * bandwidth) for _, bandwidth, _ in roofs for each in (low, high))]
    rates = "replace(format(datum.value, '~s'), 'G', ' G') + 'FLOP/s'"
    x_axis = {"title": "FLOP a byte", "values": drawing.decades(low, high), "labelExpr": "format(datum.value, '~g')"}
    least, most = min(ys) / 1.5, max(ys) * 2
    y_axis = {"title": None, "values": drawing.decades(least, most), "labelExpr": rates, "labelLimit": 0}
    x = number("x", scale=drawing.logarithmic(low, high), axis=x_axis)
    y = number("y", scale=drawing.logarithmic(least, most), axis=y_axis)
    names = [name for name, _, _ in roofs]
    scale = {"domain": names, "range": [[1, 0], [6, 4]][: len(names)]}
    dash = word("name", scale=scale, legend={**LEGEND, "symbolStrokeColor": MUTED})
    point = [{"x": intensity, "y": attained, "told": numbers.quantity(attained, "FLOP/s")}]
    layers = [
        layer("roofs", "line", {"color": MUTED, "strokeWidth": 2}, x=x, y=y, strokeDash=dash),
        layer("step", "point", {**DOT, "size": 90}, x=x, y=y),
        layer("step", "text", {**BESIDE, "dx": 10, "dy": 4}, x=x, y=y, text=word("told")),
    ]
    return drawing.svg(layers, {"roofs": slopes, "step": point}, 1, HEIGHT)
