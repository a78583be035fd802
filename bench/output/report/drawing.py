"""Drawing: what all charts share. Vega-Altair describes them, vl-convert writes SVG, without a browser or the network.

An SVG's colours are those of the light page. The page's style replaces `INK`, `MUTED`, `GRID`, `ACCENT` and `BAND` by
its own, so that one drawing serves light, dark and paper. Altair is imported only when something is drawn.
"""

from __future__ import annotations

import gc
import importlib.util
import math
import re
from collections.abc import Sequence
from typing import Any

from bench.errors import UsageError
from bench.output.report.engine import ENGINE

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

_DIGITS = re.compile(r"\d+\.\d{3,}(?:e-?\d+)?")


def require() -> None:
    """Sees that charts can be drawn.

    Raises:
        UsageError: what draws them is not installed.
    """
    missing = [name for name in ("altair", "vl_convert", "jinja2") if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"an HTML report needs {' and '.join(missing)}, which devbench without its extra has not",
            "Install it: pip install devbench[report]. --format markdown and --format csv need nothing more.",
        )


def chart(data: str) -> Any:
    """A chart of data that `_svg` is given under this name: Altair would copy and check every row several times."""
    import altair as alt

    return alt.Chart(alt.NamedData(data))


def names(order: Sequence[str], room: int = NAMES) -> Any:
    """The channel of rows by their names, in this order, within so many pixels; a comma breaks a line."""
    import altair as alt

    lines = "split(datum.label, ', ')"
    axis = alt.Axis(title=None, labelExpr=lines, labelLimit=room, domain=False, ticks=False, labelPadding=10)
    return alt.Y("name:N", sort=list(order), axis=axis)


def axis(title: str, bounds: Sequence[float], label: str) -> Any:
    """A maker of x channels on one scale: linear from 0 where that is a bound, logarithmic where values vary much."""
    import altair as alt

    low, high = min(bounds), max(bounds)
    logarithmic = low > 0 and high / low > 4
    if logarithmic:
        low, high = low / 1.15, high * 1.15
    elif low:
        margin = (high - low or 0.1 * high) * 0.06
        low, high = low - margin, high + margin
    scale = alt.Scale(type="log" if logarithmic else "linear", domain=[low, high], nice=False, zero=False)
    ticks: dict[str, Any] = {"values": decades(low, high)} if logarithmic else {"tickCount": 4}
    apart = {"labelOverlap": "greedy", "labelSeparation": 20, "labelFlush": True}
    axis = alt.Axis(title=title or None, labelExpr=label, **apart, **ticks)
    return lambda name: alt.X(f"{name}:Q", scale=scale, axis=axis)


def decades(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each power of ten within bounds; only the powers where those are many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1,)):
        found = [d * 10.0**p for p in powers for d in digits if low <= d * 10.0**p <= high]
        if len(found) <= 7:
            break
    return found


def svg(chart: Any, data: dict[str, list[dict[str, Any]]], rows: int, row: int = ROW) -> str:
    """The SVG, without its fixed size and the roles of its parts: the page gives it one role and one text."""
    fit = {"type": "fit-x", "contains": "padding"}
    made = chart.properties(width=WIDTH, height=rows * row, autosize=fit, padding=PADDING).configure(
        background="transparent",
        font="sans-serif",
        view={"stroke": None},
        text={"fontSize": 13},
        axis={
            "labelColor": INK,
            "titleColor": INK,
            "labelFontSize": 13,
            "titleFontSize": 13,
            "titleFontWeight": "normal",
            "gridColor": GRID,
            "domainColor": MUTED,
            "tickColor": MUTED,
        },
        legend={"labelColor": INK, "labelFontSize": 13},
    )
    text = ENGINE.draw({**made.to_dict(), "datasets": data})
    del made
    gc.collect(0)  # a chart is full of cycles, and a hub's collector looks for them seldom
    text = re.sub(r'(<svg[^>]*?) width="[\d.]+" height="[\d.]+"', r"\1", text, count=1)
    text = re.sub(r' (?:(?:role|aria-\w+|pointer-events)="[^"]*"|opacity="1")(?=[^<>]*>)', "", text)
    return re.sub(r'(?<= d=")[^"]+|(?<=transform=")[^"]+', lambda found: _DIGITS.sub(_rounded, found[0]), text)


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}"
