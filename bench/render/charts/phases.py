"""Phases as stacked bars: a bar for each result, a segment for each phase. A phase has the same colour everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.model.phase import Phase
from bench.render import numbers
from bench.render.charts import vega
from bench.render.charts.vega import COLOUR, EDGE, ON_COLOUR, SECONDS, TEXT_BESIDE, end, layer, word

PALETTE: dict[Phase, str] = {
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
"""After M. Okabe and K. Ito, Color Universal Design (2008). Some are lighter here, for contrast with black digits."""

OTHER = "#c8c8c8"
"""The colour of a phase that has none of its own."""

NARROWEST = 0.025
"""A segment that is narrower than this share of the longest bar has no number in it."""


@dataclass(frozen=True)
class Segment:
    """A segment of a bar.

    Args:
        label: the label of its bar.
        number: the number of the phase in the table beside the chart.
        seconds: how long the phase took.
        colour: the colour of the phase, as #rrggbb.
    """

    label: str
    number: int
    seconds: float
    colour: str


def colour(phase: Phase) -> str:
    """Return the colour of a phase, as #rrggbb."""
    return PALETTE.get(phase, OTHER)


def draw(segments: Sequence[Segment]) -> str:
    """Draw segments in the order given, with their numbers where these fit."""
    total: dict[str, float] = {}
    rows: list[dict[str, Any]] = []
    for segment in segments:
        start = total.get(segment.label, 0.0)
        total[segment.label] = start + max(0.0, segment.seconds)
        rows.append(
            {
                "label": segment.label,
                "low": start,
                "high": total[segment.label],
                "colour": segment.colour,
                "n": segment.number,
            }
        )
    longest = max(total.values()) or 1.0
    numbered = [
        {"label": row["label"], "at": (row["low"] + row["high"]) / 2, "n": str(row["n"])}
        for row in rows
        if row["high"] - row["low"] > NARROWEST * longest
    ]
    ends = [{"label": label, "at": seconds, "text": numbers.time(seconds)} for label, seconds in total.items()]
    y = vega.rows_by_label(list(total))
    x = vega.axis("", [0.0, longest * 1.16], SECONDS)
    layers = [
        layer("segments", "bar", {**EDGE, "size": 22}, x=x("low"), x2=end("high"), y=y, color=COLOUR),
        layer("numbered", "text", {"color": ON_COLOUR}, x=x("at"), y=y, text=word("n")),
        layer("ends", "text", {**TEXT_BESIDE, "dx": 6}, x=x("at"), y=y, text=word("text")),
    ]
    return vega.svg(layers, {"segments": rows, "numbered": numbered, "ends": ends}, len(total))
