"""Charts of rows: ratios, phases, steps, and the parts of a step. Phases keep their colours on any page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bench.render import numbers
from bench.render.charts import drawing
from bench.render.charts.drawing import (
    ACCENT,
    BAND,
    BESIDE,
    DASHED,
    DOT,
    GRID,
    INK,
    MUTED,
    ON_COLOUR,
    ROW,
    SECONDS,
    end,
    layer,
    word,
)

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

EDGE = {"stroke": MUTED, "strokeWidth": 0.6}
COLOUR = word("colour", scale=None)


WIDE = 10.0
"""Times its value, to either side."""


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
    """Points with their intervals on an axis of ratios, and the band in which a difference does not matter.

    An interval is drawn as far as `WIDE`: one that is wider would leave no room to see the others.
    """
    rows: list[dict[str, Any]] = [
        {
            "name": p.name,
            "value": p.value,
            "low": p.value if p.low is None else max(p.low, p.value / WIDE),
            "high": p.value if p.high is None else min(p.high, p.value * WIDE),
            "word": p.verdict,
        }
        for p in points
    ]
    bounds = [each[name] for each in rows for name in ("value", "low", "high")]
    bounds += [1 / (1 + 2 * threshold), 1 + 2 * threshold]
    x = drawing.axis("time over the base's", bounds, "format(datum.value, '~g')")
    matters = {"low": 1 / (1 + threshold), "high": 1 + threshold, "one": 1}
    y = drawing.names([p.name for p in points])
    layers = [
        layer("band", "rect", {"color": BAND}, x=x("low"), x2=end("high")),
        layer("band", "rule", DASHED, x=x("one")),
        layer("points", "rule", {"color": ACCENT, "strokeWidth": 3}, x=x("low"), x2=end("high"), y=y),
        layer("points", "point", {**DOT, "size": 70}, x=x("value"), y=y),
        layer("points", "text", {**BESIDE, "dx": 10}, x={"value": "width"}, text=word("word"), y=y),
    ]
    return drawing.svg(layers, {"band": [matters], "points": rows}, len(points))


def phases(segments: Sequence[Segment]) -> str:
    """A bar for each name, its segments in their order, with their numbers where they are wide enough for one."""
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
        layer("segments", "bar", {**EDGE, "size": 22}, x=x("low"), x2=end("high"), y=y, color=COLOUR),
        layer("wide", "text", {"color": ON_COLOUR}, x=x("at"), y=y, text=word("n")),
        layer("ends", "text", {**BESIDE, "dx": 6}, x=x("at"), y=y, text=word("told")),
    ]
    return drawing.svg(layers, {"segments": rows, "wide": wide, "ends": ends}, len(total))


def steps(spreads: Sequence[Spread]) -> str:
    """A row for each name: ticks for blocks, a box of the middle half, the median with its value."""
    marks: list[dict[str, Any]] = [{"name": each.name, "at": tick} for each in spreads for tick in each.ticks]
    boxes = [
        {"name": s.name, "low": s.low, "at": s.middle, "high": s.high, "told": numbers.time(s.middle)} for s in spreads
    ]
    y = drawing.names([each.name for each in spreads])
    x = drawing.axis("", [row["at"] for row in marks], SECONDS)
    layers = [
        layer("boxes", "bar", {"color": BAND, "size": 16}, x=x("low"), x2=end("high"), y=y),
        layer("marks", "tick", {"color": MUTED, "size": 16, "thickness": 1, "opacity": 0.8}, x=x("at"), y=y),
        layer("boxes", "tick", {"color": ACCENT, "size": 20, "thickness": 3}, x=x("at"), y=y),
        layer("boxes", "text", {"color": INK, "dy": -15}, x=x("at"), y=y, text=word("told")),
    ]
    return drawing.svg(layers, {"marks": marks, "boxes": boxes}, len(spreads), ROW + 6)


def waterfall(bars: Sequence[Bar]) -> str:
    """A row for each bar, on one axis of shares, the text beside it."""
    rows: list[dict[str, Any]] = [
        {"name": b.name, "low": b.low, "high": b.high, "colour": KINDS[b.kind], "told": b.told} for b in bars
    ]
    ends = [{"name": b.name, "at": max(b.low, b.high), "told": b.told} for b in bars]
    y = drawing.names([b.name for b in bars], 200)
    bounds = [0.0, *(each for b in bars for each in (b.low, b.high))]
    scale = {"domain": [min(bounds), max(bounds) * 1.8], "nice": False}
    ticks = {"labelExpr": "format(datum.value, '.0%')", "values": [0, 0.25, 0.5, 0.75, 1]}
    x = drawing.on(scale, {"title": "share of a step", **ticks})
    layers = [
        layer("bars", "bar", {**EDGE, "size": 20}, x=x("low"), x2=end("high"), y=y, color=COLOUR),
        layer("ends", "text", {**BESIDE, "dx": 6}, x=x("at"), y=y, text=word("told")),
    ]
    return drawing.svg(layers, {"bars": rows, "ends": ends}, len(bars), ROW - 4)
