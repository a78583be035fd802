"""The number of rounds of a trial: rounds continue while one more round is worth more than one more trial.

A ratio varies within a trial, from block to block, and between trials, from process to process. More rounds reduce the
first variance. More trials reduce both, but each trial must start its processes. Let s² be the variance of one round's
ratio, b² the variance between trials, and let `start` and `round` be the seconds of a start and of a round. The error
after a given time is smallest with √(start / round · s² / b²) rounds per trial (T. Kalibera, R. Jones: Rigorous
benchmarking in reasonable time, 2013). The rule depends on variances only, never on which side is ahead, so it adds no
bias.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

from bench.analyse.samples import process_blocks, typical_ratio
from bench.model.result import Result
from bench.model.sample import Block

SUBSETS = 4
"""Number of interleaved subsets of a trial's rounds. The variance of one round follows from their ratios."""

LEAST_BETWEEN = 0.005
"""Lower bound of the standard deviation between trials, as a share. A few trials cannot show that it is smaller."""


def best_rounds(
    pairs: Iterable[tuple[Result, Result]], rounds: int, seconds: float, start_seconds: float, trial_seconds: float
) -> int:
    """Return how many rounds this trial should have, at least the rounds so far.

    Args:
        pairs: The compared results, with the blocks of this trial so far.
        rounds: Rounds of this trial so far.
        seconds: Seconds of these rounds.
        start_seconds: Seconds that the start of the workers took.
        trial_seconds: Seconds that the trial may take in all, so that there is time for enough trials.
    """
    round_seconds = seconds / rounds
    best = max((_best(baseline, other, start_seconds / round_seconds) for baseline, other in pairs), default=0.0)
    return max(rounds, math.floor(min(best, (trial_seconds - start_seconds) / round_seconds)))


def _best(base: Result, other: Result, start: float) -> float:
    """Return the best number of rounds for one comparison if the start takes as long as `start` rounds."""
    base_blocks, other_blocks = map(process_blocks, (base, other))
    pairs_of_blocks = [(base_blocks[n], other_blocks[n]) for n in base_blocks if n in other_blocks]
    pairs_of_blocks = [pair for pair in pairs_of_blocks if min(map(len, pair)) >= 2 * SUBSETS]
    if not pairs_of_blocks:
        return 0.0
    lengths = [min(map(len, pair)) for pair in pairs_of_blocks]
    round_variance = statistics.fmean(
        _subsets(*pair) * n / SUBSETS for pair, n in zip(pairs_of_blocks, lengths, strict=True)
    )
    trial_variance = 0.0
    if len(pairs_of_blocks) > 2:
        trial_variance = statistics.variance(typical_ratio(*pair) for pair in pairs_of_blocks)
        trial_variance -= statistics.fmean(round_variance / n for n in lengths)
    return math.sqrt(start * round_variance / max(trial_variance, LEAST_BETWEEN**2))


def _subsets(base: list[Block], other: list[Block]) -> float:
    """Return the variance of the ratio over interleaved subsets of the rounds."""
    return statistics.variance(typical_ratio(base[n::SUBSETS], other[n::SUBSETS]) for n in range(SUBSETS))
