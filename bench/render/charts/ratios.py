"""Ratios as points with their intervals, beside the band in which a difference does not matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.render.charts import vega
from bench.render.charts.vega import ACCENT, BAND, DASHED, DOT, PLAIN, TEXT_BESIDE, end, layer, word

WIDEST = 10.0
"""An interval is drawn up to this multiple of its value. A wider one would leave no room to see the others."""


@dataclass(frozen=True)
class Ratio:
    """One point: a ratio of times, its interval if it has one, and its verdict."""

    label: str
    value: float
    low: float | None
    high: float | None
    verdict: str


def draw(points: Sequence[Ratio], threshold: float) -> str:
    """Draw ratios on one axis.

    Args:
        points: at least one.
        threshold: relative difference that matters, as a share.
    """
    rows: list[dict[str, Any]] = [
        {
            "label": p.label,
            "value": p.value,
            "low": p.value if p.low is None else max(p.low, p.value / WIDEST),
            "high": p.value if p.high is None else min(p.high, p.value * WIDEST),
            "verdict": p.verdict,
        }
        for p in points
    ]
    bounds = [row[name] for row in rows for name in ("value", "low", "high")]
    bounds += [1 / (1 + 2 * threshold), 1 + 2 * threshold]
    x = vega.axis("time relative to the baseline", bounds, PLAIN)
    y = vega.rows_by_label([p.label for p in points])
    band = {"low": 1 / (1 + threshold), "high": 1 + threshold, "one": 1}
    layers = [
        layer("band", "rect", {"color": BAND}, x=x("low"), x2=end("high")),
        layer("band", "rule", DASHED, x=x("one")),
        layer("points", "rule", {"color": ACCENT, "strokeWidth": 3}, x=x("low"), x2=end("high"), y=y),
        layer("points", "point", {**DOT, "size": 70}, x=x("value"), y=y),
        layer("points", "text", {**TEXT_BESIDE, "dx": 10}, x={"value": "width"}, text=word("verdict"), y=y),
    ]
    return vega.svg(layers, {"band": [band], "points": rows}, len(points))
