"""Charts over an axis: a sweep's curves with where they cross, and a step under its roofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.output import numbers
from bench.output.report import drawing
from bench.output.report.drawing import ACCENT, BAND, HEIGHT, INK, MUTED, SECONDS

LINES = (ACCENT, "#d55e00", "#009e73", "#cc79a7", "#a06000", "#56b4e9")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


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
    import altair as alt

    rows: list[dict[str, Any]] = [
        {"name": each.name, "x": x, "y": y, "low": y if low is None else low, "high": y if high is None else high}
        for each in lines
        for x, y, low, high in each.points
    ]
    xs, ys = [row["x"] for row in rows], [row[key] for row in rows for key in ("low", "high")]
    names = [each.name for each in lines]
    x_scale, y_scale = (alt.Scale(type="log", domain=[min(v) / 1.1, max(v) * 1.1], nice=False) for v in (xs, ys))
    values = sorted(set(xs))[:: max(1, len(set(xs)) // 7)]
    x_axis = alt.Axis(title=along, values=values, labelExpr="format(datum.value, '~s')", labelOverlap="greedy")
    y_axis = alt.Axis(title=None, values=drawing.decades(min(ys) / 1.1, max(ys) * 1.1), labelExpr=SECONDS)
    legend = alt.Legend(title=None, orient="top", labelLimit=0)
    colour = alt.Color("name:N", scale=alt.Scale(domain=names, range=list(LINES[: len(names)])), legend=legend)
    shape = alt.Shape("name:N", scale=alt.Scale(domain=names, range=list(SHAPES[: len(names)])), legend=legend)

    def x(name: str) -> Any:
        return alt.X(f"{name}:Q", scale=x_scale, axis=x_axis)

    def y(name: str) -> Any:
        return alt.Y(f"{name}:Q", scale=y_scale, axis=y_axis)

    least, most = min(xs), max(xs)
    marks = [{"at": c.value, "low": max(least, c.low or least), "high": min(most, c.high or most)} for c in crossings]
    layers = [
        drawing.chart("crossings").mark_rect(color=BAND).encode(x=x("low"), x2="high:Q"),
        drawing.chart("crossings").mark_rule(color=MUTED, strokeDash=[4, 3], strokeWidth=2).encode(x=x("at")),
        drawing.chart("points").mark_rule(strokeWidth=1.5).encode(x=x("x"), y=y("low"), y2="high:Q", color=colour),
        drawing.chart("points").mark_line(strokeWidth=2).encode(x=x("x"), y=y("y"), color=colour),
        drawing.chart("points")
        .mark_point(size=60, filled=True, opacity=1)
        .encode(x=x("x"), y=y("y"), color=colour, shape=shape),
    ]
    return drawing.svg(alt.layer(*layers), {"points": rows, "crossings": marks}, 1, HEIGHT)


def roofline(intensity: float, attained: float, roofs: Sequence[tuple[str, float, float]], compute: float) -> str:
    """A point under its roofs: operations a second over operations a byte, both logarithmic.

    Args:
        intensity: operations a byte, of the point.
        attained: operations a second, of the point.
        roofs: name and bytes a second of each memory, with the operations a second that it allows the point.
        compute: operations a second that the device attains at most.
    """
    import altair as alt

    knees = [compute / bandwidth for _, bandwidth, _ in roofs]
    low, high = min([intensity, *knees]) / 8, max([intensity, *knees]) * 8
    slopes = [
        {"name": name, "x": x, "y": min(compute, x * bandwidth)}
        for name, bandwidth, _ in roofs
        for x in (low, compute / bandwidth, high)
    ]
    ys: list[float] = [attained, *(min(compute, each * bandwidth) for _, bandwidth, _ in roofs for each in (low, high))]
    x_scale = alt.Scale(type="log", domain=[low, high], nice=False)
    y_scale = alt.Scale(type="log", domain=[min(ys) / 1.5, max(ys) * 2], nice=False)
    rates = "replace(format(datum.value, '~s'), 'G', ' G') + 'FLOP/s'"
    x_axis = alt.Axis(title="FLOP a byte", values=drawing.decades(low, high), labelExpr="format(datum.value, '~g')")
    y_axis = alt.Axis(title=None, values=drawing.decades(min(ys) / 1.5, max(ys) * 2), labelExpr=rates, labelLimit=0)
    x, y = alt.X("x:Q", scale=x_scale, axis=x_axis), alt.Y("y:Q", scale=y_scale, axis=y_axis)
    names = [name for name, _, _ in roofs]
    dash = alt.StrokeDash(
        "name:N",
        scale=alt.Scale(domain=names, range=[[1, 0], [6, 4]][: len(names)]),
        legend=alt.Legend(title=None, orient="top", labelLimit=0, symbolStrokeColor=MUTED),
    )
    point = [{"x": intensity, "y": attained, "told": numbers.quantity(attained, "FLOP/s")}]
    layers = [
        drawing.chart("roofs").mark_line(color=MUTED, strokeWidth=2).encode(x=x, y=y, strokeDash=dash),
        drawing.chart("step").mark_point(color=ACCENT, fill=ACCENT, size=90, opacity=1).encode(x=x, y=y),
        drawing.chart("step").mark_text(color=INK, align="left", dx=10, dy=4).encode(x=x, y=y, text="told:N"),
    ]
    return drawing.svg(alt.layer(*layers), {"roofs": slopes, "step": point}, 1, HEIGHT)
