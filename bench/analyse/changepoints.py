"""Where a history changes its level: change points of a series, by optimal segmentation.

The algorithm is PELT (R. Killick, P. Fearnhead and I. A. Eckley, Optimal detection of changepoints with a linear
computational cost, 2012), in the library ruptures (C. Truong, L. Oudre and N. Vayatis, 2020), over the logarithms of
step times, since those vary by factors. Of the library's two it is the one in C, whose linear kernel costs a level what
the squares about its mean do: 500 values without a change took it 1 ms, and the one in Python 1.6 s.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise

SMALLEST = 2
"""Points of a level: a single one may be an outlier."""

FEWEST = 6
"""Points of a history below which no level can be told from noise."""

STRICTNESS = 3.0
"""Of the penalty, in variances times the logarithm of the length; 2 is the information criterion of G. Schwarz."""


def change_points(values: Sequence[float], floor: float) -> list[int]:
    """Where a new level begins.

    Args:
        values: positive numbers in the order of time.
        floor: relative difference below which a change does not matter.

    Returns:
        Places of the first values of new levels, in order.
    """
    if len(values) < FEWEST:
        return []
    import numpy as np
    import ruptures
    from scipy.ndimage import median_filter

    logs = np.log(np.asarray(values, dtype=float))
    calm = median_filter(logs, size=3)  # keeps edges, but no level of a single point
    calm[0], calm[-1] = calm[1], calm[-2]
    penalty = STRICTNESS * _variance(logs.tolist(), floor) * math.log(len(values))
    search = ruptures.KernelCPD(kernel="linear", min_size=SMALLEST).fit(calm.reshape(-1, 1))
    ends: list[int] = search.predict(pen=penalty)
    return _mattering(logs.tolist(), ends[:-1], math.log1p(floor))


def _variance(logs: Sequence[float], floor: float) -> float:
    """Of the noise, from the differences of neighbours, which a few changes of level hardly touch; never nothing."""
    steps = [abs(b - a) for a, b in pairwise(logs)]
    spread = statistics.median(steps) / 0.9539  # the median of |difference| of two normal values, in their deviations
    return max(spread, math.log1p(floor) / 4) ** 2


def _mattering(logs: Sequence[float], places: Sequence[int], least: float) -> list[int]:
    """The changes between whose levels there is a difference that matters."""
    kept: list[int] = []
    for place, end in pairwise([*places, len(logs)]):
        before = statistics.median(logs[kept[-1] if kept else 0 : place])
        if abs(statistics.median(logs[place:end]) - before) > least:
            kept.append(place)
    return kept
