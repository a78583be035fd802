"""What is known about the variance of ratios before the first trial (G. K. Smyth, 2004: the moderated t of limma).

A few trials say little about their own variance: Student's factor is 12.7 for two trials, and one trial shows no
variance at all. But many earlier trials show how much ratios usually vary. So the variance of the trials is averaged
with the usual variance, which has the weight of `FREEDOM` degrees of freedom.

The usual variance depends on the machine, and the rounds of each trial show it. It is the variance on a quiet machine
(`QUIET` squared), plus `SCALE` times the variance of the median over rounds. `benchmarks/prior.py` compares this with
pools of real trials.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.analyse.interleaved import rounds
from bench.model.sample import Block

FREEDOM = 4.0
"""Degrees of freedom of the prior. More would fit measured trials better. Fewer cost trials, but no wrong verdicts."""

SCALE = 2.0
"""Variance between trials over that of the median over rounds. It exceeds 1: disturbances last for several rounds."""

QUIET = 0.01
"""Standard deviation of the logarithm of a trial's ratio on a quiet machine (`benchmarks/verdicts.py`)."""

BETWEEN_EPOCHS = 0.2
"""Standard deviation, between processes, of the logarithm of what passes between epochs, counted in steps.

Real processes vary half as much (`benchmarks/prior.py`). Few were measured, and a process times few ends of epochs.
"""

FEWEST_ROUNDS = 5
"""Fewest rounds of a trial from which a prior is computed."""

Processes = Sequence[Sequence[Block]]
"""For each trial, the blocks of one process."""


@dataclass(frozen=True)
class Prior:
    """A variance that is known beforehand.

    Attributes:
        variance: Variance of one trial.
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
        None if a trial was not interleaved, or has too few rounds. What the machine does between processes that run one
        after another is not known beforehand.
    """
    logs = _logs_of_ratios(base, other)
    return Prior(SCALE * statistics.fmean(map(_of_median, logs)) + QUIET**2) if logs else None


def of_epochs(base: Processes, other: Processes, whole: Sequence[tuple[float, float]]) -> Prior | None:
    """Return the prior of the logarithm of a trial's ratio over whole epochs (`bench.analyse.epoch_ratio`).

    In addition to `BETWEEN_EPOCHS`, the time between epochs varies as much as a single block: few ends are averaged. A
    ratio of blocks has twice the variance of a block, and the median of n normal values π/2n times that of a value. By
    the delta method, the time beyond typical steps counts by its share of the time. To this is added the variance of
    the mean step, because a process sees few rare slow steps.

    Args:
        base: The baseline.
        other: The other.
        whole: For each trial and side, the seconds per step over whole epochs.

    Returns:
        None where `of_ratio` returns none.
    """
    logs, steps = _logs_of_ratios(base, other), of_ratio(base, other)
    if not logs or steps is None:
        return None
    of_block = statistics.fmean(len(each) * _of_median(each) for each in logs) / math.pi
    between = BETWEEN_EPOCHS**2 + of_block
    beyond = [
        sum(_beyond_typical(blocks, seconds, between) for blocks, seconds in zip(sides, trial, strict=True))
        for *sides, trial in zip(base, other, whole, strict=True)
    ]
    return Prior(steps.variance + statistics.fmean(beyond))


def _beyond_typical(blocks: Sequence[Block], whole: float, between: float) -> float:
    """Return the variance of the logarithm of the seconds per step over whole epochs (`whole`), in typical steps.

    `between` is the variance of the logarithm of the time beyond typical steps.
    """
    times = [block.step_seconds for block in blocks]
    share = 1 - statistics.median(times) / whole
    return between * share**2 + statistics.variance(times) / len(times) / whole**2


def _logs_of_ratios(base: Processes, other: Processes) -> list[list[float]] | None:
    """Return the logarithm of the ratio in each round, by trial. None if a trial has no or too few rounds."""
    logs = []
    for blocks in zip(base, other, strict=True):
        turns = rounds(*blocks)
        if turns is None or len(turns) < FEWEST_ROUNDS:
            return None
        logs.append([math.log(b.step_seconds / a.step_seconds) for a, b in turns])
    return logs


def of_share(whole: Processes, upper: Processes | None, lower: Processes | None) -> Prior | None:
    """Return the prior of a share: the time of a level minus that of the next one, over that of the whole step.

    The delta method turns the variance of the processes into that of the share.

    Args:
        whole: The program as written.
        upper: The level. None if it is the program as written.
        lower: The next level. None to take the share of the upper level itself.

    Returns:
        None if a trial was not interleaved, or has too few rounds.
    """
    levels = [level for level in (upper, lower) if level is not None]
    variances = []
    for blocks in zip(whole, *levels, strict=True):
        turns = rounds(*blocks)
        if turns is None or len(turns) < FEWEST_ROUNDS:
            return None
        ratios = [[block.step_seconds / turn[0].step_seconds for block in turn[1:]] for turn in turns]
        high = [turn[0] if upper is not None else 0.0 for turn in ratios]
        low = [turn[-1] if lower is not None else 0.0 for turn in ratios]
        # If the upper level is the whole step, this is the share minus 1, which varies as much.
        shares = [a - b for a, b in zip(high, low, strict=True)]
        effects = map(statistics.median, (high, low, shares))  # derivatives by the logarithms of the three times
        variances.append(SCALE * _of_median(shares) + QUIET**2 / 2 * sum(effect**2 for effect in effects))
    return Prior(statistics.fmean(variances))


def _of_median(values: Sequence[float]) -> float:
    """Return the variance of the median of values, by their order statistics (J. W. McKean, R. M. Schrader, 1984).

    Outliers do not change it much, as they do not change the median.
    """
    ordered, n, z = sorted(values), len(values), 1.96
    rank = max(1, round((n + 1) / 2 - z * math.sqrt(n / 4)))
    return ((ordered[n - rank] - ordered[rank - 1]) / (2 * z)) ** 2
