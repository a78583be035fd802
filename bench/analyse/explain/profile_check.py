"""Compare a profiler's trace with the ladder: the same step, seen from the inside and by experiment.

A trace shows which thread did what, but not what would be faster without it, and it makes small operations slower. The
ladder measures what a step costs with something and without it, but does not look inside. If the two disagree, both
are shown with possible reasons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.model.explanation import Part
from bench.model.interval import Interval
from bench.model.profile import Profile

TOLERANCE = 0.15
"""A share in the trace disagrees if it is further than this from the ladder's interval."""

SLOWDOWN = 1.25
"""If tracing makes a step this many times as long, the trace says little about small operations."""


def disagreements(profile: Profile, parts: Sequence[Part], rest: Interval, step_seconds: float) -> list[str]:
    """Return a sentence for each thing about which a trace and a ladder of the same program disagree.

    Args:
        profile: of the program as written.
        parts: of the ladder.
        rest: the time of the lowest level as a share of the step.
        step_seconds: of the program as written, untraced.
    """
    return [*_check_speed(profile, step_seconds), *_check_computing(profile, rest), *_check_input(profile, parts)]


def _check_speed(profile: Profile, step_seconds: float) -> Iterator[str]:
    ratio = profile.step_seconds / step_seconds if step_seconds else 1.0
    if ratio > SLOWDOWN:
        yield (
            f"A traced step takes {ratio:.1f} times as long. The trace's shares include this overhead, so the ladder "
            "is more accurate."
        )


def _check_computing(profile: Profile, rest: Interval) -> Iterator[str]:
    share = profile.device_share
    if share is None or not _differs(share, rest):
        return
    reason = "The ladder counts gaps between operations as computing, and a trace on a CPU omits operations under 3 µs."
    if share > rest.value:
        reason = "Operations also run while Python or the input does, or belong to a part that a level leaves out."
    yield (
        f"In the trace operations run for {share:.0%} of the step, but the lowest level of the ladder takes "
        f"{rest.value:.0%}. {reason}"
    )


def _check_input(profile: Profile, parts: Sequence[Part]) -> Iterator[str]:
    shares = [part.share for part in parts if part.includes_input and part.measurable]
    if not shares:
        return
    low, high = sum(s.low or s.value for s in shares), sum(s.high or s.value for s in shares)
    ladder = Interval(value=sum(s.value for s in shares), low=low, high=high)
    if _differs(profile.input_share, ladder):
        yield (
            f"In the trace a step waits for input for {profile.input_share:.0%} of its time, but on the ladder input "
            f"costs {ladder.value:.0%}. Input that is prepared while operations run causes no wait, but takes CPU time "
            "from them."
        )


def _differs(share: float, ladder: Interval) -> bool:
    low, high = (ladder.value if v is None else v for v in (ladder.low, ladder.high))
    return share < low - TOLERANCE or share > high + TOLERANCE
