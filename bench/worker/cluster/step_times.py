"""Times the steps of a worker: the mean of many, then single ones, which show how much its steps vary.

Workers that exchange gradients wait for the slowest one in each step. If their steps vary, they wait for each other in
turns, even if all are equally fast on average.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

MEAN_SECONDS = 2.0
"""Seconds of steps whose mean is measured. Nothing waits for single ones."""

SINGLE_SECONDS = 1.0
"""Seconds of steps that are timed one by one after that."""

FEWEST_STEPS = 3
"""Minimum number of steps in each of the two parts."""

MOST_SINGLE = 1_000
"""Maximum number of single steps that are kept."""


class StepTimer:
    """Times the steps of a worker until enough are known.

    Args:
        sync: waits until a step is done.

    Attributes:
        mean: mean seconds of a step. None until it is known.
        single: seconds of single steps.
        done: whether both are known.
    """

    def __init__(self, sync: Callable[[Any], float]) -> None:
        self._sync = sync
        self._start: float | None = None
        self._latest = 0.0
        self._steps = 0
        self.mean: float | None = None
        self.single: list[float] = []
        self.done = False

    def tick(self, value: Any, steps: int = 1) -> None:
        """Count steps, the last of which returned `value`. The first call only starts the clock."""
        if self._start is None:
            self._sync(value)
            self._start = time.perf_counter()
        elif self.mean is None:
            self._steps += steps
            if time.perf_counter() - self._start >= MEAN_SECONDS and self._steps >= FEWEST_STEPS:
                self._sync(value)
                now = time.perf_counter()
                self.mean = (now - self._start) / self._steps
                self._start = self._latest = now
        else:
            self._sync(value)
            now = time.perf_counter()
            if len(self.single) < MOST_SINGLE:
                self.single.append((now - self._latest) / steps)
            self._latest = now
            self.done = now - self._start >= SINGLE_SECONDS and len(self.single) >= FEWEST_STEPS


def slowest_step(means: Sequence[float], single: Sequence[Sequence[float]]) -> float:
    """Return the mean time of the slowest worker's step.

    Args:
        means: mean step of each worker, at least one.
        single: single steps of each worker, at least one each, in the same unit. They only show how the steps vary
            around the mean, because single steps take longer than many together.
    """
    return expected_maximum(
        [[mean * each / statistics.fmean(steps) for each in steps] for mean, steps in zip(means, single, strict=True)]
    )


def expected_maximum(samples: Sequence[Sequence[float]]) -> float:
    """Return the expected maximum of one value from each sample, if they are drawn independently.

    Args:
        samples: at least one, of at least one value each.
    """
    below = [0] * len(samples)  # how many values of each sample are not above the current one
    total = share = 0.0
    for value, index in sorted((value, index) for index, sample in enumerate(samples) for value in sample):
        below[index] += 1
        reached = math.prod(count / len(sample) for count, sample in zip(below, samples, strict=True))
        total += value * (reached - share)
        share = reached
    return total
