"""How long a trial's turns go on: as long as more of them tell more than the next trial would.

A ratio varies within a trial, from block to block, and between trials, from process to process. More rounds lessen
the first, more trials both, but a trial must start its processes first. With s² the variance of a round's ratio, b²
that between trials, and the seconds that starting and a round take, the error after a given time is least with
√(start / round · s² / b²) rounds a trial (T. Kalibera, R. Jones: Rigorous benchmarking in reasonable time, 2013). Only
variances decide, never which side is ahead, so nothing is biased by it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

from bench.analyse import stats
from bench.model.result import Block, Result

SUBSETS = 4
"""Interleaved parts of a trial's rounds, whose ratios tell what one round's varies by."""

LEAST_BETWEEN = 0.005
"""What ratios vary by between trials at least, as a share: it can't be told from a few of them."""


def rounds(
    pairs: Iterable[tuple[Result, Result]], done: int, seconds: float, start_seconds: float, trial_seconds: float
) -> int:
    """Rounds that this trial should have.

    Args:
        pairs: which results are compared, this trial's blocks so far among theirs.
        done: rounds that it had; it never has fewer.
        seconds: that they took.
        start_seconds: what it took to start its workers.
        trial_seconds: what it may take in all, so that there is time for enough trials.
    """
    one = seconds / done
    wanted = max((_wanted(base, other, start_seconds / one) for base, other in pairs), default=0.0)
    return max(done, math.floor(min(wanted, (trial_seconds - start_seconds) / one)))


def _wanted(base: Result, other: Result, start: float) -> float:
    """The best number of rounds for one comparison, where starting takes as long as `start` rounds."""
    first, second = map(stats.process_blocks, (base, other))
    both = [(first[n], second[n]) for n in first if n in second]
    both = [pair for pair in both if min(map(len, pair)) >= 2 * SUBSETS]
    if not both:
        return 0.0
    lengths = [min(map(len, pair)) for pair in both]
    of_a_round = statistics.fmean(_subsets(*pair) * n / SUBSETS for pair, n in zip(both, lengths, strict=True))
    between = 0.0
    if len(both) > 2:
        between = statistics.variance(stats.turns_ratio(*pair) for pair in both)
        between -= statistics.fmean(of_a_round / n for n in lengths)
    return math.sqrt(start * of_a_round / max(between, LEAST_BETWEEN**2))


def _subsets(base: list[Block], other: list[Block]) -> float:
    """The variance of the ratios of interleaved parts of the rounds."""
    return statistics.variance(stats.turns_ratio(base[n::SUBSETS], other[n::SUBSETS]) for n in range(SUBSETS))
