"""What a chapter tells, one module a section.

A section's module has a function `section(chapter)` that returns it, or none where these results have nothing of the
kind. To add one, write it and put it into `SECTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.render.report.parts import Section
from bench.render.report.sections import environments, matrix, phases, remarks, steps, verdicts
from bench.render.report.subject import Subject

SECTIONS: tuple[Callable[[Subject], Section | None], ...] = (
    verdicts.section,
    matrix.section,
    phases.section,
    steps.section,
    environments.section,
    remarks.section,
)
"""In the order of reading."""
