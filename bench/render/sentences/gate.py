"""What the summary of a gate says about false alarms."""

from __future__ import annotations

UNCHANGED_GATES = 54
"""Gates of programs without a change in `benchmarks/changes.jsonl`."""

FALSE_ALARMS = 0
"""Number of these that reported a slow-down."""


def false_alarms() -> str:
    """Return how often gates raised a false alarm in the published measurements."""
    raised = f"{FALSE_ALARMS or 'none'} raised an alarm"
    return f"False alarms: devbench's benchmark ran {UNCHANGED_GATES} gates without a change, and {raised}."
