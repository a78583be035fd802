"""The speed-up over the number of workers, beside the ideal line on which N workers are N times as fast as one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.render.charts import vega
from bench.render.charts.vega import ACCENT, DASHED, DOT, HEIGHT, MUTED, PLAIN, end, layer, word

OCTAVES = 3.5
"""An axis that spans at most this many doublings also has ticks at 1.5 times each power of two."""


@dataclass(frozen=True)
class SpeedUp:
    """A point: the number of workers, their speed-up, and its bounds (None if unknown)."""

    workers: int
    value: float
    low: float | None
    high: float | None


def draw(points: Sequence[SpeedUp], noun: str = "workers") -> str:
    """Draw speed-ups with their intervals and the ideal line, on two logarithmic axes to the base 2.

    Args:
        points: at least one, by rising number of workers. All values and bounds are positive.
        noun: title of the x axis.
    """
    rows: list[dict[str, Any]] = [
        {"x": p.workers, "y": p.value, "low": p.low or p.value, "high": p.high or p.value} for p in points
    ]
    most = max(p.workers for p in points)
    ideal: list[dict[str, Any]] = [
        {"x": 1, "y": 1, "text": ""},
        {"x": most, "y": most, "text": "ideal" if most > 1 else ""},
    ]
    ys = [1.0, float(most), *(row[key] for row in rows for key in ("low", "high"))]
    workers = sorted({1, *(p.workers for p in points)})
    x_axis = {"title": noun, "values": workers, "labelExpr": PLAIN, "labelOverlap": "greedy"}
    y_axis = {"title": None, "values": ticks(min(ys), max(ys)), "labelExpr": f"{PLAIN} + '×'", "labelOverlap": "greedy"}
    x, y = vega.on(_scale(1, most), x_axis), vega.on(_scale(min(ys), max(ys)), y_axis)
    text = {"color": MUTED, "align": "right", "dx": -22, "dy": -3}
    layers = [
        layer("ideal", "line", {**DASHED, "strokeWidth": 1.5}, x=x("x"), y=y("y")),
        layer("ideal", "text", text, x=x("x"), y=y("y"), text=word("text")),
        layer("sizes", "rule", {"color": ACCENT, "strokeWidth": 1.5}, x=x("x"), y=y("low"), y2=end("high")),
        layer("sizes", "line", {"color": ACCENT, "strokeWidth": 2}, x=x("x"), y=y("y")),
        layer("sizes", "point", {**DOT, "size": 60}, x=x("x"), y=y("y")),
    ]
    return vega.svg(layers, {"ideal": ideal, "sizes": rows}, 1, HEIGHT)


def ticks(low: float, high: float) -> list[float]:
    """Return the powers of two between two values, and 1.5 times these if the values are few doublings apart."""
    powers = range(math.floor(math.log2(low)), math.ceil(math.log2(high)) + 1)
    digits = (1, 1.5) if math.log2(high / low) <= OCTAVES else (1,)
    return [tick for power in powers for digit in digits if low / 1.1 <= (tick := digit * 2.0**power) <= high * 1.1]


def _scale(low: float, high: float) -> dict[str, Any]:
    return {**vega.logarithmic(low / 1.1, high * 1.1), "base": 2}
