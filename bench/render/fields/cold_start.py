"""The phases of a cold start and of an epoch, and the time until the end of the first step."""

from __future__ import annotations

from bench.render import numbers
from bench.render.fields.field import Field, summary
from bench.render.labels import phase_label

HEADING = "phases"

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
        "cold start",
        summary("cold_start_seconds"),
        numbers.interval,
        HEADING,
        "s",
        brief="cold start",
    ),
)
