"""The parts of a step as a waterfall: each bar starts where the one above it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bench.render.charts import vega
from bench.render.charts.vega import ACCENT, BAND, COLOUR, EDGE, GRID, MUTED, ROW, TEXT_BESIDE, end, layer, word

Kind = Literal["step", "part", "unmeasurable", "rest"]
"""What a bar stands for."""

COLOURS: dict[Kind, str] = {"step": MUTED, "part": ACCENT, "unmeasurable": GRID, "rest": BAND}
LABEL_WIDTH = 230
"""Room for the labels of the bars, in pixels."""


@dataclass(frozen=True)
class Bar:
    """A bar: where it starts and ends, as shares of the step, the text beside it, and what it stands for."""

    label: str
    low: float
    high: float
    text: str
    kind: Kind


def draw(bars: Sequence[Bar]) -> str:
    """Draw a row for each bar, on one axis of shares."""
    rows: list[dict[str, Any]] = [
        {"label": b.label, "low": b.low, "high": b.high, "colour": COLOURS[b.kind], "text": b.text} for b in bars
    ]
    ends = [{"label": b.label, "at": max(b.low, b.high), "text": b.text} for b in bars]
    y = vega.rows_by_label([b.label for b in bars], LABEL_WIDTH)
    bounds = [0.0, *(bound for b in bars for bound in (b.low, b.high))]
    scale = {"domain": [min(bounds), max(bounds) * 1.8], "nice": False}
    ticks = {"labelExpr": "format(datum.value, '.0%')", "values": [0, 0.5, 1]}
    x = vega.on(scale, {"title": "share of a step", **ticks})
    layers = [
        layer("bars", "bar", {**EDGE, "size": 20}, x=x("low"), x2=end("high"), y=y, color=COLOUR),
        layer("ends", "text", {**TEXT_BESIDE, "dx": 6}, x=x("at"), y=y, text=word("text")),
    ]
    return vega.svg(layers, {"bars": rows, "ends": ends}, len(bars), ROW - 4, LABEL_WIDTH)
