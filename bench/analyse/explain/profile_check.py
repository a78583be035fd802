"""What a profiler's trace says, beside what the ladder found: the same step, seen from within and by experiment.

A trace sees which thread did what, but not what would be faster without it, and makes small operations longer; the
ladder sees what a step costs with something and without, but not within. Where they tell different things, both are
shown with what may explain it.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.model.explanation import Part
from bench.model.result import Interval, Profile

FAR = 0.15
"""Shares of a step that differ by more than this beyond the ladder's interval disagree."""

LONGER = 1.25
"""A traced step that takes this many times as long as others says little of small operations."""


def disagreements(profile: Profile, parts: Sequence[Part], rest: Interval, step_seconds: float) -> list[str]:
    """Sentences on where a trace and a ladder of the same program tell different things; none where they agree.

    Args:
        profile: of the program as it is.
        parts: of the ladder.
        rest: share of the step that the lowest level takes.
        step_seconds: of the program as it is, untraced.
    """
    told = []
    longer = profile.step_seconds / step_seconds if step_seconds else 1.0
    if longer > LONGER:
        told.append(
            f"Traced, a step takes {longer:.1f} times as long: what the trace adds to each operation counts in its "
            "shares, so the ladder is nearer to the truth."
        )
    if profile.device_share is not None and _apart(profile.device_share, rest):
        more = profile.device_share > rest.value
        told.append(
            f"The trace has operations running for {profile.device_share:.0%} of the step, the ladder finds "
            f"{rest.value:.0%} that no level takes away: "
            + (
                "operations also run while Python or the input does, or are part of what a level leaves out."
                if more
                else "gaps between operations of the barest loop are computing to the ladder, and a CPU's trace leaves "
                "out operations of under some 3 µs."
            )
        )
    waits = [part.share for part in parts if "input" in part.name and part.measurable]
    if waits:
        low, high = sum(w.low or w.value for w in waits), sum(w.high or w.value for w in waits)
        ladder = Interval(value=sum(w.value for w in waits), low=low, high=high)
        if _apart(profile.input_share, ladder):
            told.append(
                f"The trace has the next batch waited for during {profile.input_share:.0%} of the step, the ladder "
                f"finds that input costs {ladder.value:.0%}: input that is made while operations run is not waited "
                "for, but takes processors from them."
            )
    return told


def _apart(share: float, ladder: Interval) -> bool:
    low, high = (ladder.value if v is None else v for v in (ladder.low, ladder.high))
    return share < low - FAR or share > high + FAR
