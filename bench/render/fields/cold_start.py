"""The cold start: its phases, and the time until the end of the first step."""

from __future__ import annotations

from bench.render import numbers
from bench.render.fields.field import Field, summary
from bench.render.labels import phase_label

HEADING = "cold start"

FIELDS = (
    Field(
        "phases",
        "{}",
        summary("phases"),
        numbers.interval,
        HEADING,
        "s",
        "phase_seconds",
        "phase",
        entry_text=phase_label,
    ),
    Field(
        "cold_start_seconds",
        "total until first step",
        summary("cold_start_seconds"),
        numbers.interval,
        HEADING,
        "s",
        brief="cold start",
    ),
)
