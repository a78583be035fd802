"""Failures, warnings and notes."""

from __future__ import annotations

from bench.render.messages import messages
from bench.render.report.document import Section
from bench.render.report.result_set import ResultSet


def section(results: ResultSet) -> Section | None:
    """Return all messages on these results; None if there are none."""
    content = messages(results.members, results.labels)
    return Section("Failures, warnings and notes", tuple(content), brief=True) if content else None
