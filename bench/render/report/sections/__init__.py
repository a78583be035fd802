"""The sections of a chapter, one module each.

Each module has a function `section(results)` that returns the section, or None if these results have nothing for it.
To add a section, write its module and add it to `SECTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.render.report.document import Section
from bench.render.report.result_set import ResultSet
from bench.render.report.sections import comparisons, environments, failures, messages, phases, side_by_side, steps

SECTIONS: tuple[Callable[[ResultSet], Section | None], ...] = (
    failures.section,
    comparisons.section,
    side_by_side.section,
    phases.section,
    steps.section,
    environments.section,
    messages.section,
)
"""In the order of reading."""
