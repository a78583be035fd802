"""Charts of rows: ratios, phases, steps, and the parts of a step. Phases keep their colours on any page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bench.output import numbers
from bench.output.report import drawing
from bench.output.report.drawing import ACCENT, BAND, GRID, INK, MUTED, ON_COLOUR, ROW, SECONDS

PALETTE = {
    "interpreter": "#bdbdbd",
    "import": "#56b4e9",
    "device_init": "#e69f00",
    "data": "#2fb491",
    "build": "#f0e442",
    "prepare": "#e88d5a",
    "trace": "#d993bb",
    "first_step": "#7fa8e0",
    "warm_up": "#e6e6e6",
}
"""After M. Okabe and K. Ito, Color Universal Design (2008), some lightened so that black digits stand out."""

OTHER = "#c8c8c8"
"""Of a phase that has no colour of its own."""


@dataclass(frozen=True)
class Ratio:
    """A point of `ratios`, with its interval where there is one, and what it means."""

    name: str
    value: float
    low: float | None
    high: float | None
    verdict: str


@dataclass(frozen=True)
class Segment:
    """A part of one bar of `phases`: whose, its number in the table, its name, its seconds and colour."""

    name: str
    number: int
    phase: str
    seconds: float
    colour: str


@dataclass(frozen=True)
class Spread:
    """A row of `steps`: seconds of single blocks, and their quartiles."""

    name: str
    ticks: Sequence[float]
    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class Bar:
    """A bar of `waterfall`: its name, where it starts and ends as shares of the whole, its text, and what it is."""

    name: str
    low: float
    high: float
    told: str
    kind: Literal["whole", "part", "unsure", "rest"]


KINDS = {"whole": MUTED, "part": ACCENT, "unsure": GRID, "rest": BAND}


def colour(phase: str) -> str:
    """The colour of a phase in every chart."""
    return PALETTE.get(phase, OTHER)


def ratios(points: Sequence[Ratio], threshold: float) -> str:
    """Points with their intervals on an axis of ratios, and the band in which a difference does not matter."""
    import altair as alt

    bounds = [each for p in points for each in (p.value, p.low or p.value, p.high or p.value)]
    bounds += [1 / (1 + 2 * threshold), 1 + 2 * threshold]
    x = drawing.axis("time over the base's", bounds, "format(datum.value, '~g')")
    rows: list[dict[str, Any]] = [
        {"name": p.name, "value": p.value, "low": p.low or p.value, "high": p.high or p.value, "word": p.verdict}
        for p in points
    ]
    matters = {"low": 1 / (1 + threshold), "high": 1 + threshold, "one": 1}
    band, chart = drawing.chart("band"), drawing.chart("points").encode(y=drawing.names([p.name for p in points]))
    layers = [
        band.mark_rect(color=BAND).encode(x=x("low"), x2="high:Q"),
        band.mark_rule(color=MUTED, strokeDash=[4, 3]).encode(x=x("one")),
        chart.mark_rule(color=ACCENT, strokeWidth=3).encode(x=x("low"), x2="high:Q"),
        chart.mark_point(color=ACCENT, fill=ACCENT, size=70, opacity=1).encode(x=x("value")),
        chart.mark_text(color=INK, align="left", dx=10).encode(x=alt.value("width"), text="word:N"),
    ]
    return drawing.svg(alt.layer(*layers), {"band": [matters], "points": rows}, len(points))


def phases(segments: Sequence[Segment]) -> str:
    """A bar for each name, its segments in their order, with their numbers where they are wide enough for one."""
    import altair as alt

    total: dict[str, float] = {}
    rows: list[dict[str, Any]] = []
    for each in segments:
        start = total.get(each.name, 0.0)
        total[each.name] = start + max(0.0, each.seconds)
        rows.append(
            {"name": each.name, "low": start, "high": total[each.name], "colour": each.colour, "n": each.number}
        )
    longest = max(total.values()) or 1.0
    wide = [
        {"name": row["name"], "at": (row["low"] + row["high"]) / 2, "n": str(row["n"])}
        for row in rows
        if row["high"] - row["low"] > 0.025 * longest
    ]
    ends = [{"name": name, "at": seconds, "told": numbers.time(seconds)} for name, seconds in total.items()]
    y = drawing.names(list(total))
    x = drawing.axis("", [0.0, longest * 1.16], SECONDS)
    layers = [
        drawing.chart("segments")
        .mark_bar(stroke=MUTED, strokeWidth=0.6, size=22)
        .encode(x=x("low"), x2="high:Q", y=y, color=alt.Color("colour:N", scale=None)),
        drawing.chart("wide").mark_text(color=ON_COLOUR).encode(x=x("at"), y=y, text="n:N"),
        drawing.chart("ends").mark_text(color=INK, align="left", dx=6).encode(x=x("at"), y=y, text="told:N"),
    ]
    return drawing.svg(alt.layer(*layers), {"segments": rows, "wide": wide, "ends": ends}, len(total))


def steps(spreads: Sequence[Spread]) -> str:
    """A row for each name: ticks for blocks, a box of the middle half, the median with its value."""
    import altair as alt

    marks: list[dict[str, Any]] = [{"name": each.name, "at": tick} for each in spreads for tick in each.ticks]
    boxes = [
        {"name": s.name, "low": s.low, "at": s.middle, "high": s.high, "told": numbers.time(s.middle)} for s in spreads
    ]
    y = drawing.names([each.name for each in spreads])
    x = drawing.axis("", [row["at"] for row in marks], SECONDS)
    layers = [
        drawing.chart("boxes").mark_bar(color=BAND, size=16).encode(x=x("low"), x2="high:Q", y=y),
        drawing.chart("marks").mark_tick(color=MUTED, size=16, thickness=1, opacity=0.8).encode(x=x("at"), y=y),
        drawing.chart("boxes").mark_tick(color=ACCENT, size=20, thickness=3).encode(x=x("at"), y=y),
        drawing.chart("boxes").mark_text(color=INK, dy=-15).encode(x=x("at"), y=y, text="told:N"),
    ]
    return drawing.svg(alt.layer(*layers), {"marks": marks, "boxes": boxes}, len(spreads), ROW + 6)


def waterfall(bars: Sequence[Bar]) -> str:
    """A row for each bar, on one axis of shares, the text beside it."""
    import altair as alt

    rows: list[dict[str, Any]] = [
        {"name": b.name, "low": b.low, "high": b.high, "colour": KINDS[b.kind], "told": b.told} for b in bars
    ]
    ends = [{"name": b.name, "at": max(b.low, b.high), "told": b.told} for b in bars]
    y = drawing.names([b.name for b in bars], 200)
    bounds = [0.0, *(each for b in bars for each in (b.low, b.high))]
    scale = alt.Scale(domain=[min(bounds), max(bounds) * 1.8], nice=False)
    axis = alt.Axis(title="share of a step", labelExpr="format(datum.value, '.0%')", values=[0, 0.25, 0.5, 0.75, 1])

    def x(name: str) -> Any:
        return alt.X(f"{name}:Q", scale=scale, axis=axis)

    layers = [
        drawing.chart("bars")
        .mark_bar(stroke=MUTED, strokeWidth=0.6, size=20)
        .encode(x=x("low"), x2="high:Q", y=y, color=alt.Color("colour:N", scale=None)),
        drawing.chart("ends").mark_text(color=INK, align="left", dx=6).encode(x=x("at"), y=y, text="told:N"),
    ]
    return drawing.svg(alt.layer(*layers), {"bars": rows, "ends": ends}, len(bars), ROW - 4)
