"""The building blocks of all charts. Vega-Lite describes them; vl-convert draws them without a browser or network.

An SVG has the colours of the light page. The page's style sheet replaces `INK`, `MUTED`, `GRID`, `ACCENT` and `BAND`
by its own colours, so that the same SVG suits a light page, a dark page and print.

Charts are plain dictionaries in Vega-Lite's own vocabulary. Vega-Altair writes the same, but takes 50 MB in a hub and
most of a second to import. The tests check every chart against Vega-Lite's schema.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.errors import UsageError
from bench.render.charts.vega_process import VEGA
from bench.version import install_command

INK, MUTED, GRID, ACCENT, BAND = "#1a1a1f", "#5c5c66", "#dcdce2", "#0b5cad", "#cfe0f2"
ON_COLOUR = "#0a0a0a"
"""The colour of digits on the colours of phases. No page replaces it."""

WIDTH, ROW, LABELS, HEIGHT = 480, 36, 130, 260
"""Pixels: the width of a chart, the height of a row, the width of row labels, the height of a chart without rows."""

PADDING = {"right": 14, "top": 8, "bottom": 4}
"""Pixels. `svg` adds padding on the left (`WIDER`)."""

WIDER = 0.16
"""How much wider the reader's fonts may be than those that Vega-Lite measures labels with, as a share."""

PLAIN = "format(datum.value, ',~r')"
"""An axis label without a prefix or an exponent, from any number."""

SECONDS = (
    f"datum.value == 0 ? '0' : datum.value >= 1 ? {PLAIN} + ' s' : "
    "replace(format(datum.value, '~s'), regexp('([a-zµ]*)$'), ' $1s')"
)
"""An axis label with the right unit, from a value in seconds."""

CONFIG = {
    "background": "transparent",
    "font": "sans-serif",
    "view": {"stroke": None},
    "text": {"fontSize": 13},
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 13,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "gridColor": GRID,
        "domainColor": MUTED,
        "tickColor": MUTED,
    },
    "legend": {"labelColor": INK, "labelFontSize": 13},
}

DASHED = {"color": MUTED, "strokeDash": [4, 3]}
DOT = {"color": ACCENT, "fill": ACCENT, "opacity": 1}
EDGE = {"stroke": MUTED, "strokeWidth": 0.6}
TEXT_BESIDE = {"color": INK, "align": "left"}
LEGEND = {"title": None, "orient": "top", "labelLimit": 0, "columnPadding": 24}

LONGEST = 200
"""Maximum length of a text in a chart, in characters. The time that the library takes grows with its square."""


def require() -> None:
    """Check that the packages for HTML reports are installed.

    Raises:
        UsageError: one is missing.
    """
    missing = [name for name in ("vl_convert", "jinja2") if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"an HTML report needs {' and '.join(missing)}",
            f"In a checkout of devbench, run `{install_command('report')}`, or use --format markdown or --format csv.",
        )


def layer(data: str, kind: str, look: Mapping[str, Any], **channels: Mapping[str, Any]) -> dict[str, Any]:
    """Return marks of one kind for a named set of rows.

    Args:
        data: a key of the `data` that `svg` gets.
        kind: the mark, such as "rule".
        look: properties of the mark, such as its colour.
        channels: the encoding: where the position, the colour and the text of a mark come from.
    """
    return {"data": {"name": data}, "mark": {"type": kind, **look}, "encoding": channels}


def number(field: str, **properties: Any) -> dict[str, Any]:
    """Return the channel of a numeric field, with its scale and axis."""
    return {"field": field, "type": "quantitative", **properties}


def word(field: str, **properties: Any) -> dict[str, Any]:
    """Return the channel of a field of words, with its scale and legend."""
    return {"field": field, "type": "nominal", **properties}


COLOUR = word("colour", scale=None)
"""The channel of a field that holds colours."""


def end(field: str) -> dict[str, Any]:
    """Return the channel of a span's other end, on the scale of its first end."""
    return {"field": field}


def on(scale: Mapping[str, Any], axis: Mapping[str, Any]) -> Callable[[str], dict[str, Any]]:
    """Return a function from a numeric field to its channel on this scale and axis."""
    return lambda field: number(field, scale=scale, axis=axis)


def logarithmic(low: float, high: float) -> dict[str, Any]:
    """Return a logarithmic scale with exactly these ends."""
    return {"type": "log", "domain": [low, high], "nice": False}


def rows_by_label(labels: Sequence[str], width: int = LABELS) -> dict[str, Any]:
    """Return the y channel of rows, one for each label in this order. A comma breaks the label's line.

    Args:
        labels: all different.
        width: room for the labels, in pixels.
    """
    lines = "split(datum.label, ', ')"
    axis = {"title": None, "labelExpr": lines, "labelLimit": width, "domain": False, "ticks": False, "labelPadding": 10}
    return word("label", sort=list(labels), axis=axis)


def axis(title: str, bounds: Sequence[float], label: str) -> Callable[[str], dict[str, Any]]:
    """Return a function from a numeric field to its x channel, on a scale that fits all bounds.

    The scale is logarithmic if the bounds differ by more than a factor of 4, and linear otherwise. It starts at 0 if
    0 is a bound.

    Args:
        title: of the axis; empty for none.
        bounds: values that must be visible.
        label: Vega expression for a tick's label.
    """
    low, high = min(bounds), max(bounds)
    factors = low > 0 and high / low > 4
    if factors:
        low, high = low / 1.15, high * 1.15
    elif low:
        margin = (high - low or 0.1 * high) * 0.06
        low, high = low - margin, high + margin
    scale = {"type": "log" if factors else "linear", "domain": [low, high], "nice": False, "zero": False}
    ticks: dict[str, Any] = {"values": decades(low, high)} if factors else {"tickCount": 4}
    apart = {"labelOverlap": "greedy", "labelSeparation": 20, "labelFlush": True}
    return on(scale, {"title": title or None, "labelExpr": label, **apart, **ticks})


def ticks(low: float, high: float) -> dict[str, Any]:
    """Return the ticks of a logarithmic axis: `decades` if there are several, otherwise about four others."""
    values = decades(low, high)
    return {"values": values} if len(values) > 1 else {"tickCount": 4}


def decades(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times each power of ten between two values; only the powers if these are more than 7."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1,)):
        ticks = [d * 10.0**p for p in powers for d in digits if low <= d * 10.0**p <= high]
        if len(ticks) <= 7:
            break
    return ticks


def svg(
    layers: Sequence[Mapping[str, Any]],
    data: Mapping[str, list[dict[str, Any]]],
    rows: int,
    row: int = ROW,
    labels: int = LABELS,
) -> str:
    """Draw a chart and return its SVG.

    The SVG has no fixed size and no ARIA roles: the page gives it one role and one text. Long texts are cut.

    Args:
        layers: from back to front.
        data: the rows of each name that the layers use.
        rows: how many rows high the chart is.
        row: height of a row, in pixels.
        labels: room for the labels on the left, in pixels.

    Raises:
        ValueError: Vega-Lite does not accept the chart.
        ChartNotDrawn: the drawing process ended, or a limit was reached.
    """
    return VEGA.draw(
        {
            "layer": _cut(layers),
            "datasets": _cut(data),
            "width": WIDTH,
            "height": rows * row,
            "autosize": {"type": "fit-x", "contains": "padding"},
            "padding": {**PADDING, "left": round(WIDER * labels)},
            "config": CONFIG,
        }
    )


def _cut(part: Any) -> Any:
    """Return a part of a chart with its long texts cut. Equal texts stay equal, and different ones different."""
    if isinstance(part, str):
        if len(part) <= LONGEST:
            return part
        return f"{part[: LONGEST - 10]}… {hashlib.sha256(part.encode(errors='replace')).hexdigest()[:8]}"
    if isinstance(part, Mapping):
        return {key: _cut(value) for key, value in part.items()}
    if isinstance(part, Sequence):
        return [_cut(value) for value in part]
    return part
