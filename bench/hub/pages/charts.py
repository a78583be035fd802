"""The charts of a page, as far as there is time to draw them."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import replace

from bench.hub.pages.layout import guarded
from bench.render.charts.vega_process import ChartNotDrawn
from bench.render.messages import Message
from bench.render.report.document import Figure, Section, Table
from bench.render.text import plain

BEGIN_UNTIL: ContextVar[float] = ContextVar("BEGIN_UNTIL", default=math.inf)
"""Until when the page of this thread may begin to draw a chart, by `time.monotonic`."""


def with_charts(sections: Iterable[Section]) -> tuple[Section, ...]:
    """Return sections with their charts drawn. A message replaces a chart that cannot be drawn, or not in time."""
    return tuple(replace(section, content=tuple(map(_draw, section.content))) for section in sections)


def _draw(part: Table | Figure | Message) -> Table | Figure | Message:
    if not isinstance(part, Figure):
        return part
    try:
        if time.monotonic() > BEGIN_UNTIL.get():
            raise ChartNotDrawn("the time for the charts of this page was over")
        svg = guarded(part.draw, "")
    except ChartNotDrawn as error:
        logging.getLogger("devbench.hub").warning("chart not drawn: %s", error)
        return Message("note", f"The hub did not draw this chart: {plain(error.message)}. See the table.")
    if not svg:
        return Message("warning", "These figures cannot be drawn. See the table.")
    return replace(part, draw=lambda: svg)
