"""How long a training waits at the ends of its epochs.

When an epoch ends its iterator of `tf.data`, TensorFlow 2.21 wakes the iterator's autotuning thread and waits for it.
Sometimes that thread checks too early and sleeps on until its next wake-up: 10 ms after the iterator's first step, then
after twice as long each time, up to a minute (`OptimizeLoop` in `core/framework/model.cc`; benchmarks/README.md has the
measurements). TensorFlow 2.10 does not do this. How often it happens does not depend on the length of an epoch, so
short epochs are enough to estimate it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from bench.analyse.samples import merged_facts
from bench.model.interval import Interval
from bench.model.result import Result
from bench.model.sample import ProcessSample

FIRST_VERSION = (2, 21)
"""First version of TensorFlow whose iterators wait."""

NOTEWORTHY = 0.03
"""Smallest share of a projection for which waits get a note."""

CLEAR_SECONDS = 0.03
"""Shortest possible wait that can be told from no wait."""

FEWEST_ENDS = 8
"""Fewest observed ends from which the share that waits is estimated."""

FIX = "set `autotune.enabled = False` in the options of the dataset."


def steps_per_epoch(samples: Sequence[ProcessSample]) -> int:
    """Return the steps of one pass over the data, the partial batch included; 0 if there are no epochs."""
    epoch = merged_facts(samples).epoch
    return epoch.steps if epoch else 0


def can_wait(version: str) -> bool:
    """Return whether iterators of this version of TensorFlow wait at their ends."""
    numbers = version.split(".")[:2]
    return all(number.isdigit() for number in numbers) and tuple(map(int, numbers)) >= FIRST_VERSION


def seconds_until_wake_up(age: float) -> float:
    """Return the seconds from an iterator's age, in seconds, until the next wake-up of its autotuning thread."""
    wake_up, pause = 0.0, 0.01
    while wake_up < age:
        wake_up += pause
        pause = min(2 * pause, 60.0)
    return wake_up - age


def observed_waits(samples: Sequence[ProcessSample]) -> tuple[int, int]:
    """Return how many short epochs waited at their ends, and how many ends were observed."""
    ends = [(seconds_until_wake_up(end.age), end.gap) for s in samples for end in s.facts.iterator_ends or ()]
    clear = [gap > 0.5 * wait for wait, gap in ends if wait > CLEAR_SECONDS]
    return sum(clear), len(clear)


def add_waits(
    projected: Interval, samples: Sequence[ProcessSample], total: int, step_seconds: float
) -> tuple[Interval, float]:
    """Return a projection with its expected waits, and the expected waits alone, in seconds.

    How often a training waits is random, and the share of waiting epochs is an estimate. So the interval becomes wider
    by both: the variance of the binomial, with the prior of H. Jeffreys.

    Args:
        projected: seconds without waits.
        samples: the processes that the projection is computed from.
        total: steps of the training.
        step_seconds: seconds of a mean step.
    """
    length, (waited, observed) = steps_per_epoch(samples), observed_waits(samples)
    if not length or observed < FEWEST_ENDS:
        return projected, 0.0
    passes, wait = total / length, seconds_until_wake_up(_iterator_age(samples, length * step_seconds))
    expected = passes * waited / observed * wait
    share = (waited + 0.5) / (observed + 1)
    spread = wait * math.sqrt(share * (1 - share) * (passes + passes**2 / observed))
    value, wider = projected.value + expected, {}
    if projected.low is not None and projected.high is not None:
        below, above = (math.hypot(abs(v - projected.value), 1.96 * spread) for v in (projected.low, projected.high))
        wider = {"low": max(0.0, value - below), "high": value + above}
    return projected.model_copy(update={"value": value, **wider}), expected


def add_note(result: Result, samples: Sequence[ProcessSample]) -> None:
    """Add a note on the waits that a projection contains, or that the training may have on top."""
    projection = result.projection
    if projection is None:
        return
    waited, observed = observed_waits(samples)
    noteworthy = NOTEWORTHY * projection.build_and_fit_seconds.value
    if observed >= FEWEST_ENDS:
        if projection.epoch_end_wait_seconds > noteworthy:
            result.notes.append(
                f"The projection contains {projection.epoch_end_wait_seconds:.1f} s of waits at the ends of epochs, "
                f"until tf.data's autotuning thread wakes up. {waited} of {observed} short epochs waited. "
                f"To avoid it, {FIX}"
            )
        return
    most = longest_wait(result, samples)
    if most > noteworthy:
        result.notes.append(
            f"The training may take up to {most:.0f} s longer than projected: at the ends of epochs it may wait until "
            f"tf.data's autotuning thread wakes up. To avoid it, {FIX}"
        )


def longest_wait(result: Result, samples: Sequence[ProcessSample]) -> float:
    """Return the most seconds that the projected training can wait at the ends of its epochs; 0 if it cannot wait."""
    length, mean = steps_per_epoch(samples), result.summary.step_seconds_mean
    if result.projection is None or mean is None or not length or result.spec.loop not in ("as-written", "fit"):
        return 0.0
    if not can_wait(result.environment.tensorflow or ""):
        return 0.0
    age = _iterator_age(samples, length * mean.value)
    return seconds_until_wake_up(age) * result.projection.steps / length


def _iterator_age(samples: Sequence[ProcessSample], steps_seconds: float) -> float:
    """Return the age of an iterator at its end, in seconds.

    Keras drops the iterator of an epoch when the next epoch starts, after validation and callbacks.

    Args:
        samples: the processes that timed the ends of epochs.
        steps_seconds: seconds of the steps of an epoch.
    """
    ends = [sample.phases["epoch_end"] for sample in samples if "epoch_end" in sample.phases]
    return steps_seconds + (statistics.fmean(ends) if ends else 0.0)
