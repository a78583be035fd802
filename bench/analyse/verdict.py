"""Faster, Same, Slower or Undecided: what a ratio's interval says against a difference that matters."""

from __future__ import annotations

import math

from bench.analyse.stats import t_quantile
from bench.model.comparison import Verdict
from bench.model.result import Interval

MOST_UNITS = 10_000
"""More trials than this settle nothing that anybody would wait for."""


def verdict(ratio: Interval | None, threshold: float) -> Verdict:
    """What the interval of a ratio of times decides.

    The interval stands wholly beyond the threshold, or wholly within it, or neither: the test of equivalence and
    of difference in one (D. J. Schuirmann, 1987, for the equivalence). The threshold is taken on logarithms, so
    that swapping the two sides swaps the words.

    Args:
        ratio: time of the one in question over the base's; none where there is nothing to compare.
        threshold: relative difference that matters, such as 0.02.
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


def needed(ratio: Interval, threshold: float) -> int | None:
    """Units (trials, or processes a side) that would settle an undecided verdict, if the ratio stays where it is.

    The interval has to shrink until it holds no bound of the threshold: its half-width to the distance of the
    nearest bound. Stein's second stage (C. Stein, 1945) with that distance as the width wanted.

    Returns:
        None where there are too few units to tell, as where a bound is beyond any number, or where more than
        `MOST_UNITS` would be needed: the ratio is as good as the threshold itself.
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
    spread = half / t_quantile(ratio.n, ratio.confidence) * math.sqrt(ratio.n)
    found = ratio.n
    while found <= MOST_UNITS:  # Student's quantile falls with the number that it decides
        enough = (t_quantile(found, ratio.confidence) * spread / distance) ** 2
        if enough <= found:
            return found
        found = max(found + 1, min(math.ceil(enough), 2 * found))
    return None
