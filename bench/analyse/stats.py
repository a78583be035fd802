"""From blocks to estimates. The unit is the process or the trial, never the step.

A process gives one number: the median of its blocks is the typical step, their mean is what a bill shows.
Intervals are Student's over those numbers, on logarithms, since times vary by factors. A ratio is taken
within each trial, round by round, where both specs took turns and met the same noise; `benchmarks/noise.py`
shows which estimator varies least there.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from bench.model.facts import Facts
from bench.model.result import PHASES, Block, Interval, ProcessSample, Result, Series

CONFIDENCE = 0.95

ORDERED = 5
"""Trials from which on the place of a start is taken out of ratios: of fewer it would cost more than it helps."""

DEAR = 0.25
"""Share by which the variance may grow when the place of a start is taken out: more, and too few trials tell of it."""

Estimator = Callable[[Sequence[Block]], float]

Ratio = Callable[[Sequence[Block], Sequence[Block]], float]
"""Logarithm of the second's seconds a step over the first's."""


def median(blocks: Sequence[Block]) -> float:
    """Seconds of the typical step: the median over blocks."""
    return statistics.median(b.step_seconds for b in blocks)


def mean(blocks: Sequence[Block]) -> float:
    """Seconds of the mean step: all time over all steps."""
    return sum(b.seconds for b in blocks) / sum(b.steps for b in blocks)


def faster_half(blocks: Sequence[Block]) -> float:
    """Mean seconds of a step over the faster half of the blocks: what the machine's other guests disturb least."""
    times = sorted(b.step_seconds for b in blocks)
    return statistics.fmean(times[: (len(times) + 1) // 2])


def turns_ratio(base: Sequence[Block], other: Sequence[Block]) -> float:
    """Logarithm of the other's seconds a step over the base's, of two processes of one trial.

    Where they took turns it is the median over rounds of the ratio of both blocks of a round: what disturbs one for
    longer disturbs its neighbour as well, and what disturbs one alone is an outlier to a median. Where one came after
    the other it is the ratio of the faster halves.
    """
    rounds = list(zip(base, other, strict=False))
    turns = [turn for a, b in rounds for turn in sorted((a.position, b.position))]
    if all(one < then for one, then in pairwise(turns)):
        return statistics.median(math.log(b.step_seconds / a.step_seconds) for a, b in rounds)
    return math.log(faster_half(other) / faster_half(base))


def mean_ratio(base: Sequence[Block], other: Sequence[Block]) -> float:
    """The same of the mean steps, in which what is slow but seldom counts, which the median above passes over."""
    return math.log(mean(other) / mean(base))


def variance(values: Sequence[float]) -> float:
    """Of a sample, so over n - 1. Python's own reckons in whole fractions, which takes twice as long and more."""
    import numpy as np

    return float(np.var(values, ddof=1))


def t_quantile(n: int, confidence: float = CONFIDENCE) -> float:
    """Two-sided quantile of Student's t for n values (n - 1 degrees of freedom)."""
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, (1 + confidence) / 2))


def interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Geometric mean with Student's t interval on logarithms (W. S. Gosset, 1908), for positive values.

    Args:
        values: one positive number a process or trial.
        confidence: two-sided level.

    Returns:
        An interval without low and high where there is one value only.
    """
    if not values:
        raise ValueError("no values")
    if min(values) <= 0:
        return arithmetic(values, confidence)
    logs = [math.log(v) for v in values]
    centre = statistics.fmean(logs)
    if len(logs) == 1:
        return Interval(value=values[0], n=1, confidence=confidence)
    half = t_quantile(len(logs), confidence) * math.sqrt(variance(logs)) / math.sqrt(len(logs))
    return Interval(
        value=math.exp(centre),
        low=math.exp(centre - half),
        high=math.exp(centre + half),
        n=len(logs),
        confidence=confidence,
    )


def inverse(ratio: Interval) -> Interval:
    """The ratio the other way round."""
    low, high = (None if v is None else 1 / v if v else math.inf for v in (ratio.high, ratio.low))
    return ratio.model_copy(update={"value": 1 / ratio.value, "low": low, "high": high})


def scaled(found: Interval, factor: float) -> Interval:
    """An estimate and its bounds, times a positive factor."""
    low, high = (None if v is None else v * factor for v in (found.low, found.high))
    return found.model_copy(update={"value": found.value * factor, "low": low, "high": high})


def arithmetic(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Mean with Student's t interval, for quantities that add up (or may be zero)."""
    centre = statistics.fmean(values)
    if len(values) == 1:
        return Interval(value=centre, n=1, confidence=confidence)
    half = t_quantile(len(values), confidence) * math.sqrt(variance(values)) / math.sqrt(len(values))
    return Interval(value=centre, low=centre - half, high=centre + half, n=len(values), confidence=confidence)


def needed(values: Sequence[float], target: float, confidence: float = CONFIDENCE) -> int:
    """Units that a relative error of `target` needs, from the variance of those at hand (C. Stein, 1945, two stages).

    Args:
        values: positive numbers of a pilot, at least two.
        target: relative half-width, such as 0.03.
        confidence: two-sided level.
    """
    spread = math.sqrt(variance([math.log(v) for v in values]))
    return max(2, math.ceil((t_quantile(len(values), confidence) * spread / math.log1p(target)) ** 2))


def usable(result: Result) -> list[ProcessSample]:
    """The samples that measured something and did not fail; where there is none, what an interruption cut off."""
    timed = [s for s in result.samples if any(x.blocks for x in s.series)]
    whole = [s for s in timed if s.failure is None]
    return whole or [s for s in timed if s.failure is not None and s.failure.kind == "interrupted"]


def main_series(sample: ProcessSample) -> Series | None:
    """The series of steps; none where a workload only has probes."""
    return next((x for x in sample.series if x.name == "step" and x.blocks), None)


def process_blocks(result: Result) -> dict[int, list[Block]]:
    """Trial number: the blocks of steps of this result's process in it; where a time is none, as NaN, it has none."""
    return {
        sample.trial: series.blocks
        for sample in usable(result)
        if (series := main_series(sample)) and all(0 < b.seconds < math.inf for b in series.blocks)
    }


def process_values(result: Result, estimator: Estimator = median) -> dict[int, float]:
    """Trial number: seconds a step of this result's process in it; a time that is none, as NaN, is left out."""
    found = {trial: estimator(blocks) for trial, blocks in process_blocks(result).items()}
    return {trial: seconds for trial, seconds in found.items() if 0 < seconds < math.inf}


@dataclass(frozen=True)
class Contrast:
    """The difference of two means, as known from measured values.

    Args:
        mean: the other's mean less the first's.
        variance: of that difference.
        freedom: degrees of freedom of the variance's estimate.
        n: values behind it, of the side that has fewer.
    """

    mean: float
    variance: float
    freedom: float
    n: int

    @classmethod
    def paired(cls, first: Sequence[float], other: Sequence[float]) -> Contrast:
        """Of values that belong together one by one, as within trials."""
        apart = [b - a for a, b in zip(first, other, strict=True)]
        n = len(apart)
        return cls(statistics.fmean(apart), variance(apart) / n if n > 1 else math.inf, n - 1, n)

    @classmethod
    def independent(cls, first: Sequence[float], other: Sequence[float]) -> Contrast:
        """Of values measured apart, whose variances may differ (B. L. Welch, 1947; F. E. Satterthwaite, 1946).

        The same as `scipy.stats.ttest_ind(equal_var=False)`, which takes a second to import.
        """
        n, mean = min(len(first), len(other)), statistics.fmean(other) - statistics.fmean(first)
        if n < 2:
            return cls(mean, math.inf, 0, n)
        shares = [(variance(v) / len(v), len(v) - 1) for v in (first, other)]
        total = sum(share for share, _ in shares)
        return cls(mean, total, total**2 / sum(s**2 / f for s, f in shares) if total else n - 1, n)

    @classmethod
    def of(cls, first: Mapping[int, float], other: Mapping[int, float], paired: bool) -> Contrast:
        """Of values by trial: those of the trials that have both, one by one, where they pair; else of all."""
        if paired and (trials := sorted(first.keys() & other.keys())):
            return cls.paired([first[trial] for trial in trials], [other[trial] for trial in trials])
        return cls.independent(list(first.values()), list(other.values()))

    @classmethod
    def adjusted(cls, apart: Sequence[float], first: Sequence[int]) -> Contrast:
        """Of paired differences, without what being started first adds to one side.

        Whoever is started first was seen to be slower by 2 to 6% for its whole life (`benchmarks/observer.py`): each
        difference is the contrast and, where one of the two was first, that effect; by least squares (analysis of
        covariance with one covariate; R. A. Fisher, 1932). Where one of them never was first, where telling the effect
        apart is too dear, or where there are fewer than `ORDERED`, it is the plain paired one.

        Args:
            apart: the other's value less the first's, in each trial.
            first: in each, 1 where the other was started first, -1 where the base was, 0 where neither.
        """
        n = len(apart)
        if n < ORDERED or not (first.count(1) and first.count(-1)):
            return cls.paired([0.0] * n, apart)
        centre, mean = statistics.fmean(first), statistics.fmean(apart)
        squares = sum((x - centre) ** 2 for x in first)
        if centre**2 / squares > DEAR / n:
            return cls.paired([0.0] * n, apart)
        slope = sum((x - centre) * (y - mean) for x, y in zip(first, apart, strict=True)) / squares
        value = mean - slope * centre
        rest = sum((y - value - slope * x) ** 2 for x, y in zip(first, apart, strict=True))
        return cls(value, rest / (n - 2) * (1 / n + centre**2 / squares), n - 2, n)

    def plus(self, other: Contrast) -> Contrast:
        """The sum of two that were measured apart, with Satterthwaite's degrees of freedom."""
        variance = self.variance + other.variance
        if not math.isfinite(variance):  # one of them has a single value
            return Contrast(self.mean + other.mean, math.inf, 0, min(self.n, other.n))
        shares = [(each.variance, each.freedom) for each in (self, other)]
        freedom = variance**2 / sum(v**2 / f for v, f in shares if v and f) if variance else min(f for _, f in shares)
        return Contrast(self.mean + other.mean, variance, freedom, min(self.n, other.n))

    def quantile(self, confidence: float = CONFIDENCE) -> float:
        """Two-sided quantile of Student's t."""
        from scipy.special import stdtrit

        return float(stdtrit(self.freedom, (1 + confidence) / 2))

    def interval(self, confidence: float = CONFIDENCE) -> Interval:
        """Student's interval; without bounds where a side has one value only."""
        if self.n < 2:
            return Interval(value=self.mean, n=self.n, confidence=confidence)
        half = self.quantile(confidence) * math.sqrt(self.variance)
        return Interval(value=self.mean, low=self.mean - half, high=self.mean + half, n=self.n, confidence=confidence)

    def ratio(self, confidence: float = CONFIDENCE) -> Interval:
        """The same of a difference of logarithms, as a ratio; a bound that no float holds is 0 or infinite."""
        found = self.interval(confidence)
        low, high = (None if v is None else _exp(v) for v in (found.low, found.high))
        return found.model_copy(update={"value": math.exp(found.value), "low": low, "high": high})


def _exp(bound: float) -> float:
    """Of a bound, which may be beyond any number: of two trials with ratios 9 times apart it is, at 99.9%."""
    try:
        return math.exp(bound)
    except OverflowError:
        return math.inf


def within(first: Result, other: Result, ratio: Ratio = turns_ratio) -> Contrast | None:
    """Logarithm of the other's step time over the first's, within trials; none where they share no trial."""
    if first.group != other.group:
        return None
    a, b = process_blocks(first), process_blocks(other)
    trials = sorted(a.keys() & b.keys())
    if not trials:
        return None
    firsts = [{s.trial for s in usable(each) if s.start_position == 0} for each in (first, other)]
    return Contrast.adjusted(
        [ratio(a[trial], b[trial]) for trial in trials],
        [(trial in firsts[1]) - (trial in firsts[0]) for trial in trials],
    )


def independent_ratio(
    first: Sequence[float], other: Sequence[float], confidence: float = CONFIDENCE
) -> Interval | None:
    """The other's geometric mean over the first's, where the two were measured apart; none without positive values."""
    if not first or not other or min(*first, *other) <= 0:
        return None
    return Contrast.independent([math.log(v) for v in first], [math.log(v) for v in other]).ratio(confidence)


def started_alone(samples: Sequence[ProcessSample]) -> list[ProcessSample]:
    """Those that came to their first step and whose start was measured, while nobody else started."""
    return [s for s in samples if "first_step" in s.phases and s.start_position is not None]


def phase_values(samples: Sequence[ProcessSample]) -> dict[str, dict[int, float]]:
    """Phase: trial: its seconds where a process was started alone, warm-up included; in the phases' order."""
    measured: dict[str, dict[int, float]] = {}
    for sample in started_alone(samples):
        warm_up = sum(b.seconds for x in sample.series for b in x.warmup)
        for name, seconds in {**sample.phases, "warm_up": warm_up}.items():
            measured.setdefault(name, {})[sample.trial] = seconds
    ordered = sorted(measured, key=lambda name: PHASES.index(name) if name in PHASES else len(PHASES))
    return {name: measured[name] for name in ordered}


def warm_up_extra(sample: ProcessSample, mean: float) -> float:
    """Seconds that the steps of warm-up took beyond what they take once they are steady."""
    blocks = [b for series in sample.series for b in series.warmup]
    return sum(b.seconds for b in blocks) - sum(b.steps for b in blocks) * mean


def facts(samples: Sequence[ProcessSample]) -> Facts:
    """The facts of all processes together. Of each fact the first process that read it counts."""
    read: dict[str, Any] = {}
    for sample in samples:
        for name, value in sample.facts:
            if value is not None:
                read.setdefault(name, value)
    return Facts.model_construct(**read)
