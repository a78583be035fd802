"""Drawing: what all charts share. Vega-Lite describes them, vl-convert draws them, without a browser or the network.

An SVG's colours are those of the light page. The page's style replaces `INK`, `MUTED`, `GRID`, `ACCENT` and `BAND` by
its own, so that one drawing serves light, dark and paper. Vega-Lite's own words are used as they are, in plain
dictionaries: Vega-Altair, which writes the same, takes 50 MB in a hub and most of a second to import. Its schema
checks what is drawn in the tests.
"""

from __future__ import annotations

import importlib.util
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.errors import UsageError
from bench.render.charts.engine import ENGINE

INK, MUTED, GRID, ACCENT, BAND = "#1a1a1f", "#5c5c66", "#dcdce2", "#0b5cad", "#cfe0f2"
ON_COLOUR = "#0a0a0a"
"""Digits on the colours of phases, which no page replaces."""

WIDTH, ROW, NAMES = 480, 36, 130
"""Pixels: of a chart, of a row in it, of the names beside it."""

PADDING = {"left": 20, "right": 14, "top": 8, "bottom": 4}
"""The reader's fonts may be wider than those that a chart is measured by."""

SECONDS = "datum.value == 0 ? '0' : replace(format(datum.value, '~s'), regexp('([a-zµ]*)$'), ' $1s')"

HEIGHT = 260
"""Pixels of a chart that has no rows."""

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
"""The looks that all charts share."""

DASHED = {"color": MUTED, "strokeDash": [4, 3]}
DOT = {"color": ACCENT, "fill": ACCENT, "opacity": 1}
BESIDE = {"color": INK, "align": "left"}
"""Looks of marks: a rule at a place of note, a point, and the text beside one."""

_DIGITS = re.compile(r"\d+\.\d{3,}(?:e-?\d+)?")


def require() -> None:
    """Sees that charts can be drawn.

    Raises:
        UsageError: what draws them is not installed.
    """
    missing = [name for name in ("vl_convert", "jinja2") if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"an HTML report needs {' and '.join(missing)}, which devbench without its extra has not",
            "Install it: pip install devbench[report]. --format markdown and --format csv need nothing more.",
        )


def layer(data: str, kind: str, look: Mapping[str, Any], **channels: Mapping[str, Any]) -> dict[str, Any]:
    """Marks of one kind for the rows of one name among those that `svg` is given.

    Args:
        data: the rows' name.
        kind: of mark, such as "rule".
        look: the mark's properties, such as its colour.
        channels: what each row's place, colour or text is taken from.
    """
    return {"data": {"name": data}, "mark": {"type": kind, **look}, "encoding": channels}


def number(field: str, **how: Any) -> dict[str, Any]:
    """A channel of a field that holds numbers, with its scale and axis."""
    return {"field": field, "type": "quantitative", **how}


def word(field: str, **how: Any) -> dict[str, Any]:
    """A channel of a field that holds words, with its scale and legend."""
    return {"field": field, "type": "nominal", **how}


def end(field: str) -> dict[str, Any]:
    """The channel of a span's other end, on the scale of its first."""
    return {"field": field}


def on(scale: Mapping[str, Any], axis: Mapping[str, Any]) -> Callable[[str], dict[str, Any]]:
    """A maker of channels of numbers on one scale and axis."""
    return lambda field: number(field, scale=scale, axis=axis)


def logarithmic(low: float, high: float) -> dict[str, Any]:
    """A scale that ends where it is told to."""
    return {"type": "log", "domain": [low, high], "nice": False}


def names(order: Sequence[str], room: int = NAMES) -> dict[str, Any]:
    """The channel of rows by their names, in this order, within so many pixels; a comma breaks a line."""
    lines = "split(datum.label, ', ')"
    axis = {"title": None, "labelExpr": lines, "labelLimit": room, "domain": False, "ticks": False, "labelPadding": 10}
    return word("name", sort=list(order), axis=axis)


def axis(title: str, bounds: Sequence[float], label: str) -> Callable[[str], dict[str, Any]]:
    """A maker of x channels on one scale: linear from 0 where that is a bound, logarithmic where values vary much."""
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


def decades(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each power of ten within bounds; only the powers where those are many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1,)):
        found = [d * 10.0**p for p in powers for d in digits if low <= d * 10.0**p <= high]
        if len(found) <= 7:
            break
    return found


def svg(
    layers: Sequence[Mapping[str, Any]], data: Mapping[str, list[dict[str, Any]]], rows: int, row: int = ROW
) -> str:
    """The SVG, without its fixed size and the roles of its parts: the page gives it one role and one text."""
    text = ENGINE.draw(
        {
            "layer": layers,
            "datasets": data,
            "width": WIDTH,
            "height": rows * row,
            "autosize": {"type": "fit-x", "contains": "padding"},
            "padding": PADDING,
            "config": CONFIG,
        }
    )
    text = re.sub(r'(<svg[^>]*?) width="[\d.]+" height="[\d.]+"', r"\1", text, count=1)
    text = re.sub(r' (?:(?:role|aria-\w+|pointer-events)="[^"]*"|opacity="1")(?=[^<>]*>)', "", text)
    return re.sub(r'(?<= d=")[^"]+|(?<=transform=")[^"]+', lambda found: _DIGITS.sub(_rounded, found[0]), text)


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}"
