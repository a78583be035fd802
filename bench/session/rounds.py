"""How many rounds a trial has: as long as another round tells more than the next trial would.

A ratio varies within a trial, from block to block, and between trials, from process to process. More rounds reduce the
first, more trials reduce both, but a trial must start its processes first. Let s² be the variance of one round's ratio,
b² the variance between trials, and let a start and a round take their seconds. The error after a given time is smallest
with √(start / round · s² / b²) rounds per trial (T. Kalibera, R. Jones: Rigorous benchmarking in reasonable time,
2013). Only variances decide, never which side is ahead, so the rule adds no bias.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

from bench.analyse.samples import process_blocks, typical_ratio
from bench.model.result import Block, Result

SUBSETS = 4
"""Interleaved subsets of a trial's rounds. Their ratios tell the variance of one round."""

LEAST_BETWEEN = 0.005
"""Lower bound of the standard deviation between trials, as a share: a few trials cannot tell it."""


def wanted(
    pairs: Iterable[tuple[Result, Result]], done: int, seconds: float, start_seconds: float, trial_seconds: float
) -> int:
    """Return how many rounds this trial should have, at least those that are done.

    Args:
        pairs: The compared results, with the blocks of this trial so far.
        done: Rounds that the trial had.
        seconds: Seconds that they took.
        start_seconds: Seconds that the start of the workers took.
        trial_seconds: Seconds that the trial may take in all, so that there is time for enough trials.
    """
    one = seconds / done
    best = max((_best(baseline, other, start_seconds / one) for baseline, other in pairs), default=0.0)
    return max(done, math.floor(min(best, (trial_seconds - start_seconds) / one)))


def _best(base: Result, other: Result, start: float) -> float:
    """Return the best number of rounds for one comparison if the start takes as long as `start` rounds."""
    first, second = map(process_blocks, (base, other))
    both = [(first[n], second[n]) for n in first if n in second]
    both = [pair for pair in both if min(map(len, pair)) >= 2 * SUBSETS]
    if not both:
        return 0.0
    lengths = [min(map(len, pair)) for pair in both]
    of_a_round = statistics.fmean(_subsets(*pair) * n / SUBSETS for pair, n in zip(both, lengths, strict=True))
    between = 0.0
    if len(both) > 2:
        between = statistics.variance(typical_ratio(*pair) for pair in both)
        between -= statistics.fmean(of_a_round / n for n in lengths)
    return math.sqrt(start * of_a_round / max(between, LEAST_BETWEEN**2))


def _subsets(base: list[Block], other: list[Block]) -> float:
    """The variance of the ratios of interleaved parts of the rounds."""
    return statistics.variance(typical_ratio(base[n::SUBSETS], other[n::SUBSETS]) for n in range(SUBSETS))
