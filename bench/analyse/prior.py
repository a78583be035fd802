"""What is known about the variance of ratios before the first trial (G. K. Smyth, 2004: the moderated t of limma).

A few trials show their own variance badly: Student's factor is 12.7 for two of them, and one shows no variance at all.
But many earlier trials show how much ratios vary. So a variance counts as if it had been estimated from `FREEDOM` more
degrees of freedom, in which it was as large as usual.

What is usual depends on the machine, and each trial shows it, because its rounds vary. The usual variance of a trial is
`SCALE` times a sum of two: the variance of the mean of its rounds, and what processes of one program differ by
(`BETWEEN`). `benchmarks/prior.py` fits the constants on pools of real trials.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.analyse.interleaved import rounds
from bench.model.sample import Block

FREEDOM = 4.0
"""Degrees of freedom that the prior is worth. Less than was fitted, which costs trials but no errors."""

SCALE = 4.0
"""Variance of trials over that sum. It is more than 1, because a disturbance lasts for several rounds."""

BETWEEN = 0.005
"""With `SCALE`, it makes 1% of the standard deviation of a trial's ratio if no round is disturbed (`QUIET`)."""

QUIET = 0.01
"""Standard deviation of a trial's ratio on a quiet machine (`benchmarks/verdicts.py`)."""

Processes = Sequence[Sequence[Block]]
"""For each trial, the blocks of one process."""


@dataclass(frozen=True)
class Prior:
    """A variance that is known beforehand.

    Attributes:
        variance: Of one trial.
        freedom: Degrees of freedom that this knowledge is worth.
    """

    variance: float
    freedom: float = FREEDOM

    def moderate(self, variance: float, freedom: float) -> tuple[float, float]:
        """Return the posterior variance of one trial, and its degrees of freedom.

        Args:
            variance: Variance between the trials.
            freedom: Its degrees of freedom, 0 if there is one trial.
        """
        total = self.freedom + freedom
        return (self.freedom * self.variance + freedom * variance) / total, total


def of_ratio(base: Processes, other: Processes) -> Prior | None:
    """Return the prior of the logarithm of a trial's ratio, which is the median over its rounds.

    Returns:
        None if a trial was not interleaved, or has a single round. What the machine does between processes that run one
        after another is not known beforehand.
    """
    spreads = []
    for blocks in zip(base, other, strict=True):
        turns = rounds(*blocks)
        if turns is None or len(turns) < 2:
            return None
        spreads.append(_of_mean([math.log(b.step_seconds / a.step_seconds) for a, b in turns]))
    return Prior(SCALE * (statistics.fmean(spreads) + BETWEEN**2))


def of_share(whole: Processes, upper: Processes | None, lower: Processes | None) -> Prior | None:
    """Return the prior of a share: the time of a level minus that of the next one, over that of the whole step.

    What the processes differ by is taken to the share by the delta method.

    Args:
        whole: The program as written.
        upper: The level. None if it is the program as written.
        lower: The next level. None to take the share of the upper level itself.

    Returns:
        None as for a ratio.
    """
    levels = [level for level in (upper, lower) if level is not None]
    variances = []
    for blocks in zip(whole, *levels, strict=True):
        turns = rounds(*blocks)
        if turns is None or len(turns) < 2:
            return None
        ratios = [[block.step_seconds / turn[0].step_seconds for block in turn[1:]] for turn in turns]
        high = [turn[0] if upper is not None else 0.0 for turn in ratios]
        low = [turn[-1] if lower is not None else 0.0 for turn in ratios]
        shares = [a - b for a, b in zip(high, low, strict=True)]  # minus 1 if the level is the whole step
        effects = map(statistics.median, (high, low, shares))  # of the processes of both levels and of the whole step
        variances.append(_of_mean(shares) + BETWEEN**2 / 2 * sum(effect**2 for effect in effects))
    return Prior(SCALE * statistics.fmean(variances))


def _of_mean(values: Sequence[float]) -> float:
    """Return the variance of the mean of values."""
    return statistics.variance(values) / len(values)
