"""Warnings and notes."""

from __future__ import annotations

from bench.render.messages import warnings_and_notes
from bench.render.report.document import Section
from bench.render.report.result_set import ResultSet


def section(results: ResultSet) -> Section | None:
    """Return all warnings and notes on these results; None if there are none."""
    content = warnings_and_notes(results.members, results.labels)
    return Section("Warnings and notes", tuple(content), brief=True) if content else None
