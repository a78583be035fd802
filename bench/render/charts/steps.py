"""The spread of step times: a tick for each block, a box for the middle half, and the median."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.render import numbers
from bench.render.charts import vega
from bench.render.charts.vega import ACCENT, BAND, INK, MUTED, ROW, SECONDS, end, layer, word


@dataclass(frozen=True)
class Spread:
    """One row: step times of single blocks and their quartiles, all in seconds."""

    label: str
    ticks: Sequence[float]
    lower_quartile: float
    median: float
    upper_quartile: float


def draw(spreads: Sequence[Spread]) -> str:
    """Draw a row for each spread, on one axis."""
    ticks: list[dict[str, Any]] = [{"label": spread.label, "at": tick} for spread in spreads for tick in spread.ticks]
    boxes = [
        {
            "label": spread.label,
            "low": spread.lower_quartile,
            "median": spread.median,
            "high": spread.upper_quartile,
            "text": numbers.time(spread.median),
        }
        for spread in spreads
    ]
    y = vega.rows_by_label([spread.label for spread in spreads])
    x = vega.axis("", [row["at"] for row in ticks], SECONDS)
    layers = [
        layer("boxes", "bar", {"color": BAND, "size": 16}, x=x("low"), x2=end("high"), y=y),
        layer("ticks", "tick", {"color": MUTED, "size": 16, "thickness": 1, "opacity": 0.8}, x=x("at"), y=y),
        layer("boxes", "tick", {"color": ACCENT, "size": 20, "thickness": 3}, x=x("median"), y=y),
        layer("boxes", "text", {"color": INK, "dy": -15}, x=x("median"), y=y, text=word("text")),
    ]
    return vega.svg(layers, {"ticks": ticks, "boxes": boxes}, len(spreads), ROW + 6)
