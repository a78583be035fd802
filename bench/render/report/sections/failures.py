"""What failed, and what to do about it. It comes first, because it explains what the other sections lack."""

from __future__ import annotations

from bench.render import messages
from bench.render.report.document import Section
from bench.render.report.result_set import ResultSet


def section(results: ResultSet) -> Section | None:
    """Return the failures of these results; None if there are none."""
    content = messages.failures(results.members, results.labels)
    return Section("Failures", tuple(content), brief=True) if content else None
