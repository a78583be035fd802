"""Finds the steps that are rare and long because of what a line of the script does in them, such as a checkpoint.

Other work on the machine also makes some steps long, but it interrupts whatever line runs. So a step counts only if a
line that takes much of the long steps takes little of the others.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.model.facts import LongSteps
from bench.worker.diagnose.named_lines import lines_of
from bench.worker.diagnose.own_time import Place
from bench.worker.frames import SourceLine

TIMES = 3.0
"""A step is long if it takes more than this many times the median step time."""

RARE = 0.2
"""Long steps are rare if they are at most this share of the steps."""

FEWEST = 3
"""Fewest steps that show how often they come. The first ones may only trace."""

MUCH = 0.3
"""Smallest share of the time of the long steps that such a line takes."""

LITTLE = 0.2
"""Largest share of the other steps that it takes, relative to its share of the long ones."""

MOST = 0.5
"""Smallest share of a step that such a line takes in it."""


@dataclass(frozen=True, eq=False)
class TimedCall:
    """A call of a loop that was sampled.

    Attributes:
        steps: steps that it made.
        seconds: time from the end of the previous call to its end.
        samples: what each sample in this time shows, with the seconds that it counts for.
    """

    steps: int
    seconds: float
    samples: Sequence[tuple[Place, float]]

    @property
    def step_seconds(self) -> float:
        """Seconds of a step."""
        return self.seconds / self.steps


def rare_calls(calls: Sequence[TimedCall]) -> tuple[list[TimedCall], list[SourceLine]]:
    """Return the calls that are long because of some lines, and these lines. Empty if there are none.

    Args:
        calls: calls in succession.
    """
    median = statistics.median(call.step_seconds for call in calls)
    long = [call for call in calls if call.step_seconds > TIMES * median]
    if not FEWEST <= len(long) <= RARE * len(calls):
        return [], []
    in_long = _shares(long)
    in_others = _shares(call for call in calls if call.step_seconds <= TIMES * median)
    lines = [line for line, share in in_long.items() if share >= MUCH and in_others.get(line, 0.0) <= LITTLE * share]
    rare = [
        call
        for call in long
        if sum(seconds for place, seconds in call.samples if place.source in lines) >= MOST * call.seconds
    ]
    return (rare, lines) if len(rare) >= FEWEST else ([], [])


def described(rare: Sequence[TimedCall], calls: Sequence[TimedCall], lines: Iterable[SourceLine]) -> LongSteps:
    """Return what rare calls have in common.

    Args:
        rare: these calls.
        calls: all calls, these included.
        lines: the lines that make them long.
    """
    median = statistics.median(call.step_seconds for call in calls)
    return LongSteps(
        count=len(rare),
        seconds=sum(call.seconds - median * call.steps for call in rare) / len(rare),
        every=sum(call.steps for call in calls) / len(rare),
        median=median,
        **lines_of(Counter(lines)),
    )


def _shares(calls: Iterable[TimedCall]) -> dict[SourceLine, float]:
    """Return the share of the sampled time that each line of the script takes in some calls."""
    seconds: dict[SourceLine, float] = {}
    for call in calls:
        for place, part in call.samples:
            seconds[place.source] = seconds.get(place.source, 0.0) + part
    total = sum(seconds.values())
    return {line: part / total for line, part in seconds.items() if line.line} if total else {}
