"""Times and steps in the sentences of findings."""

from __future__ import annotations

UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def all_steps(total: int) -> str:
    """Return words for all steps of a training."""
    return f"all {total:,} steps" if total > 1 else "the only step"


def time_text(seconds: float) -> str:
    """Return a time with three digits, in the largest unit in which it is at least 1 when rounded."""
    unit, name = next((unit for unit in UNITS if seconds >= 0.9995 * unit[0]), UNITS[-1])
    value = seconds / unit
    return f"{value:.3g} {name}" if value < 999.5 else f"{value:.0f} {name}"
