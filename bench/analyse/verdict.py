"""The verdict: what the interval of a ratio says against the threshold."""

from __future__ import annotations

import math

from bench.analyse.stats import quantile
from bench.model.comparison import Verdict
from bench.model.interval import Interval

MOST_UNITS = 10_000
"""Largest number of trials or processes that is suggested."""


def verdict(ratio: Interval | None, threshold: float) -> Verdict:
    """Return what the interval of a ratio of times decides.

    The whole interval lies beyond the threshold (faster, slower), within it (same), or neither (undecided). This
    combines a test of difference with a test of equivalence (D. J. Schuirmann, 1987). The threshold is symmetric on
    logarithms, so exchanging the two sides exchanges faster and slower. Without bounds, there is not enough data.

    Args:
        ratio: time of the result in question over that of the baseline. None if there is nothing to compare.
        threshold: smallest relative difference that matters, such as 0.02.
    """
    if ratio is None or ratio.low is None or ratio.high is None:
        return "not enough data"
    bound = 1.0 + threshold
    if ratio.high < 1.0 / bound:
        return "faster"
    if ratio.low > bound:
        return "slower"
    if 1.0 / bound <= ratio.low and ratio.high <= bound:
        return "same"
    return "undecided"


def units_for_verdict(
    ratio: Interval, threshold: float, prior_freedom: float = 0.0, freedom: float | None = None
) -> int | None:
    """Return how many units would settle an undecided verdict, if the ratio stays where it is.

    Units are trials, or processes on each side. The interval must become so narrow that it contains no bound of the
    threshold: on logarithms, its half-width must be at most the distance of the ratio from the nearest bound. This is
    the second stage of C. Stein (1945), with that distance as the half-width.

    Args:
        ratio: the interval so far.
        threshold: smallest relative difference that matters.
        prior_freedom: degrees of freedom that the interval has beyond those of its units.
        freedom: degrees of freedom that it has by its units. Default: those of pairs, one less than their number.

    Returns:
        None if the interval lacks a bound, if a bound is 0 or infinite, or if more than `MOST_UNITS` would be needed
        because the ratio is too close to the threshold.
    """
    if ratio.low is None or ratio.high is None or ratio.low <= 0 or ratio.high == math.inf:
        return None
    bound = math.log1p(threshold)
    centre, half = math.log(ratio.value), (math.log(ratio.high) - math.log(ratio.low)) / 2
    distance = abs(abs(centre) - bound)
    if half <= 0:
        return ratio.n
    if distance <= 0:
        return None
    each = 1.0 if freedom is None or ratio.n < 2 else freedom / (ratio.n - 1)

    def width(units: int) -> float:
        return quantile(prior_freedom + each * (units - 1), ratio.confidence)

    spread = half / width(ratio.n) * math.sqrt(ratio.n)
    units = ratio.n
    while units <= MOST_UNITS:  # Student's quantile decreases with the number of units that it determines
        enough = (width(units) * spread / distance) ** 2
        if enough <= units:
            return units
        units = max(units + 1, min(math.ceil(enough), 2 * units))
    return None
