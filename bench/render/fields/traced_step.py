"""How a profiler's trace divides a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.model.profile import Profile
from bench.model.result import Result
from bench.render import numbers, trace
from bench.render.fields.field import Field

HEADING = "share of a traced step"


def _traced(read: Callable[[Profile], Any]) -> Callable[[Result], Any]:
    return lambda result: read(result.profile) if result.profile else None


FIELDS = (
    Field("traced", "{}", _traced(trace.shares), numbers.percent, HEADING, entry_label="part"),
    Field("traced_operations", "longest operations", _traced(trace.longest_operations), str, HEADING),
)
