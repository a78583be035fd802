"""Statistics of plain numbers: intervals, contrasts of two means, and how many units a target needs.

A unit is a process or a trial, never a step. Intervals are Student's t intervals. Those of positive times are computed
on logarithms, because times vary by factors. Where a prior of the variance is known, Smyth's moderated t replaces
Student's (`bench.analyse.prior`). `bench.analyse.samples` reads the numbers from results.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.analyse.prior import Prior
from bench.model.interval import Interval

CONFIDENCE = 0.95
"""Confidence of an interval that is published by itself. Intervals that must hold together have a higher one."""

FEW = 3
"""If a wide interval comes from at most this many values, the smallest and the largest of them are shown instead."""

FEWEST_ADJUSTED = 5
"""Fewest trials for which ratios are adjusted for the order of starts. Fewer cannot spare a degree of freedom."""

LARGEST_COST = 0.25
"""Largest relative growth of the variance that the adjustment for the order of starts may cause."""


def variance(values: Sequence[float]) -> float:
    """Return the sample variance of at least two values, with the divisor n - 1.

    It does not use `statistics.variance`, which computes in exact fractions and takes more than twice as long.
    """
    import numpy as np

    return float(np.var(values, ddof=1))


def t_quantile(n: int, confidence: float = CONFIDENCE) -> float:
    """Return the two-sided quantile of Student's t for n values (n - 1 degrees of freedom)."""
    return quantile(n - 1, confidence)


def quantile(freedom: float, confidence: float = CONFIDENCE) -> float:
    """Return the two-sided quantile of Student's t for degrees of freedom, which need not be a whole number."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))


def interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Return the geometric mean with Student's t interval on logarithms (W. S. Gosset, 1908).

    Args:
        values: one number per process or trial. If one is not positive, the result is that of `arithmetic`.
        confidence: two-sided level.

    Returns:
        An interval without bounds if there is one value only.

    Raises:
        ValueError: There is no value.
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
    value = math.exp(centre)
    return Interval(
        value=value,
        low=value * _exp(-half),
        high=value * _exp(half),
        n=len(logs),
        confidence=confidence,
        **_range(values),
    )


def arithmetic(values: Sequence[float], confidence: float = CONFIDENCE, differences: bool = False) -> Interval:
    """Return the arithmetic mean with Student's t interval, for quantities that add up or may be zero.

    If all values are positive, the interval is computed on the logarithm of the mean (delta method), so that its
    bounds are positive. It differs from the plain interval only if it is wide. If the smallest value is 0, the lower
    bound is at least 0.

    Args:
        values: At least one.
        confidence: Level of the interval.
        differences: Whether the values are differences. Their mean may be 0 even if all of them are positive.

    Returns:
        An interval without bounds if there is one value only.

    Raises:
        ValueError: There is no value.
    """
    centre = statistics.fmean(values)
    if len(values) == 1:
        return Interval(value=centre, n=1, confidence=confidence)
    half = t_quantile(len(values), confidence) * math.sqrt(variance(values)) / math.sqrt(len(values))
    low, high = centre - half, centre + half
    least = -math.inf if differences else min(values)
    if least > 0:
        low, high = centre * _exp(-half / centre), centre * _exp(half / centre)
    elif least == 0:
        low = max(0.0, low)
    return Interval(value=centre, low=low, high=high, n=len(values), confidence=confidence, **_range(values))


def _range(values: Sequence[float]) -> dict[str, float]:
    """Return the smallest and the largest value. Empty if there is only one, or more than `FEW`."""
    return {"least": min(values), "most": max(values)} if 1 < len(values) <= FEW else {}


def scale(estimate: Interval, factor: float) -> Interval:
    """Return an estimate and its bounds, multiplied by a positive factor."""
    names = ("value", "low", "high", "least", "most")
    scaled = {name: None if (v := getattr(estimate, name)) is None else v * factor for name in names}
    return estimate.model_copy(update=scaled)


def units_for_target(values: Sequence[float], target: float, confidence: float = CONFIDENCE) -> int:
    """Return how many units a target error needs, by the variance of a pilot (C. Stein, 1945, two-stage procedure).

    Args:
        values: positive numbers of the pilot, at least two.
        target: relative half-width of the interval, such as 0.03.
        confidence: two-sided level.
    """
    spread = math.sqrt(variance([math.log(v) for v in values]))
    return max(2, math.ceil((t_quantile(len(values), confidence) * spread / math.log1p(target)) ** 2))


@dataclass(frozen=True)
class Contrast:
    """The difference of two means, estimated from measured values.

    Args:
        mean: the other mean minus the first.
        variance: variance of that difference. Infinite if it is unknown.
        freedom: degrees of freedom of the estimated variance, including those of a prior.
        n: number of values behind it, on the side that has fewer.
    """

    mean: float
    variance: float
    freedom: float
    n: int

    @classmethod
    def paired(cls, first: Sequence[float], other: Sequence[float], prior: Prior | None = None) -> Contrast:
        """Return the contrast of values that form pairs, as within trials.

        Args:
            first: the values of one side.
            other: those of the other, in the same order.
            prior: what is known about the variance of a difference. None if nothing is.
        """
        differences = [b - a for a, b in zip(first, other, strict=True)]
        n = len(differences)
        own = variance(differences) if n > 1 else 0.0 if prior else math.inf
        each, freedom = prior.moderate(own, n - 1) if prior else (own, n - 1)
        return cls(statistics.fmean(differences), each / n, freedom, n)

    @classmethod
    def independent(cls, first: Sequence[float], other: Sequence[float]) -> Contrast:
        """Return the contrast of values measured apart (B. L. Welch, 1947; F. E. Satterthwaite, 1946).

        The variances of the two sides may differ. `scipy.stats.ttest_ind(equal_var=False)` computes the same, but takes
        a second to import.
        """
        n, mean = min(len(first), len(other)), statistics.fmean(other) - statistics.fmean(first)
        if n < 2:
            return cls(mean, math.inf, 0, n)
        shares = [(variance(v) / len(v), len(v) - 1) for v in (first, other)]
        total = sum(share for share, _ in shares)
        return cls(mean, total, total**2 / sum(s**2 / f for s, f in shares) if total else n - 1, n)

    @classmethod
    def of(cls, first: Mapping[int, float], other: Mapping[int, float], paired: bool) -> Contrast:
        """Return the contrast of values by trial.

        Args:
            first: trial to value.
            other: trial to value.
            paired: whether values of the same trial form a pair. If no trial has both, all values count on their own.
        """
        if paired and (trials := sorted(first.keys() & other.keys())):
            return cls.paired([first[trial] for trial in trials], [other[trial] for trial in trials])
        return cls.independent(list(first.values()), list(other.values()))

    @classmethod
    def adjusted(cls, differences: Sequence[float], first: Sequence[int], prior: Prior | None = None) -> Contrast:
        """Return the contrast of paired differences, adjusted for the order of starts.

        The worker that starts first in a trial is slower by 2 to 6% for its whole life (`benchmarks/observer.py`). So
        each difference is modelled as the contrast plus the effect of starting first, by least squares (analysis of
        covariance with one covariate; R. A. Fisher, 1932). The plain paired contrast is returned if one side never
        started first, if there are fewer than `FEWEST_ADJUSTED` trials, or if the variance would grow by more than
        `LARGEST_COST`.

        Args:
            differences: for each trial, the value of the other minus that of the base.
            first: for each trial, 1 if the other was started first, -1 if the base was, 0 if neither was.
            prior: what is known about the variance of a difference. None if nothing is.
        """
        n = len(differences)
        if n < FEWEST_ADJUSTED or not (first.count(1) and first.count(-1)):
            return cls.paired([0.0] * n, differences, prior)
        centre, mean = statistics.fmean(first), statistics.fmean(differences)
        squares = sum((x - centre) ** 2 for x in first)
        if centre**2 / squares > LARGEST_COST / n:
            return cls.paired([0.0] * n, differences, prior)
        slope = sum((x - centre) * (y - mean) for x, y in zip(first, differences, strict=True)) / squares
        value = mean - slope * centre
        rest = sum((y - value - slope * x) ** 2 for x, y in zip(first, differences, strict=True))
        each, freedom = prior.moderate(rest / (n - 2), n - 2) if prior else (rest / (n - 2), n - 2)
        return cls(value, each * (1 / n + centre**2 / squares), freedom, n)

    def plus(self, other: Contrast) -> Contrast:
        """Return the sum of two independent contrasts (degrees of freedom by F. E. Satterthwaite, 1946)."""
        variance = self.variance + other.variance
        if not math.isfinite(variance):  # that of one of them is unknown
            return Contrast(self.mean + other.mean, math.inf, 0, min(self.n, other.n))
        shares = [(contrast.variance, contrast.freedom) for contrast in (self, other)]
        freedom = variance**2 / sum(v**2 / f for v, f in shares if v and f) if variance else min(f for _, f in shares)
        return Contrast(self.mean + other.mean, variance, freedom, min(self.n, other.n))

    def quantile(self, confidence: float = CONFIDENCE) -> float:
        """Return the two-sided quantile of Student's t for its degrees of freedom."""
        return quantile(self.freedom, confidence)

    @property
    def is_known(self) -> bool:
        """Whether its variance is known, so that its interval has bounds."""
        return math.isfinite(self.variance)

    @property
    def prior_freedom(self) -> float:
        """Degrees of freedom beyond those of its own values. Negative if an adjustment took one."""
        return self.freedom - (self.n - 1)

    def interval(self, confidence: float = CONFIDENCE) -> Interval:
        """Return its interval, without bounds if a side has one value only and there is no prior."""
        if not self.is_known:
            return Interval(value=self.mean, n=self.n, confidence=confidence)
        half = self.quantile(confidence) * math.sqrt(self.variance)
        return Interval(value=self.mean, low=self.mean - half, high=self.mean + half, n=self.n, confidence=confidence)

    def ratio(self, confidence: float = CONFIDENCE) -> Interval:
        """Return the interval of a difference of logarithms as a ratio. A bound that overflows is 0 or infinite."""
        difference = self.interval(confidence)
        low, high = (None if v is None else _exp(v) for v in (difference.low, difference.high))
        return difference.model_copy(update={"value": math.exp(difference.value), "low": low, "high": high})


def independent_ratio(
    first: Sequence[float], other: Sequence[float], confidence: float = CONFIDENCE
) -> Interval | None:
    """Return the geometric mean of the other values over that of the first, with Welch's interval.

    Returns:
        None if a side is empty or a value is not positive.
    """
    if not first or not other or min(*first, *other) <= 0:
        return None
    return Contrast.independent([math.log(v) for v in first], [math.log(v) for v in other]).ratio(confidence)


def _exp(bound: float) -> float:
    """Return e to the power of a bound. It is infinite if it overflows.

    That happens at 99.9% after two trials whose ratios differ 9-fold.
    """
    try:
        return math.exp(bound)
    except OverflowError:
        return math.inf
