"""How long a training waits at the ends of its epochs.

When an epoch ends its iterator of `tf.data`, TensorFlow 2.21 wakes the iterator's autotuning thread and waits for it.
Sometimes that thread checks too early, and sleeps until its next wake-up. It wakes up 10 ms after the iterator's first
step, then after twice as long each time, up to a minute (`OptimizeLoop` in `core/framework/model.cc`;
benchmarks/README.md has the measurements). TensorFlow 2.10 does not do this. How often it happens does not depend on
the length of an epoch, so short epochs are enough to estimate it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from bench.analyse.samples import main_series, mean_step, merged_facts
from bench.model.interval import Interval
from bench.model.phase import Phase
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

LEAST_SPREAD = 0.04
"""Smallest relative standard deviation of an epoch's length. On a quiet machine, processes of a spec vary this much."""

AGES = 100
"""Number of equally likely ages of an iterator over which its wait is averaged."""

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
    """Return the seconds until the autotuning thread of an iterator of this age, in seconds, wakes up."""
    wake_up, pause = 0.0, 0.01
    while wake_up < age:
        wake_up += pause
        pause = min(2 * pause, 60.0)
    return wake_up - age


def observed_waits(samples: Sequence[ProcessSample]) -> tuple[int, int]:
    """Return how many short epochs waited at their ends, and how many ends were observed.

    An end does not count if its wait would have been too short to be told from no wait.
    """
    ends = [(seconds_until_wake_up(end.age), end.gap) for s in samples for end in s.facts.iterator_ends or ()]
    clear = [gap > 0.5 * wait for wait, gap in ends if wait > CLEAR_SECONDS]
    return sum(clear), len(clear)


def add_waits(
    projected: Interval, samples: Sequence[ProcessSample], total: int, step_seconds: float
) -> tuple[Interval, float]:
    """Return a projection with its expected waits, and the expected waits alone, in seconds.

    Three things are uncertain, and make the interval wider: how often a training waits, which is random; the share of
    epochs that wait, which is an estimate (a binomial with the prior of H. Jeffreys); and how long they wait.

    Args:
        projected: seconds without waits.
        samples: the processes that the projection is computed from.
        total: steps of the training.
        step_seconds: seconds of a mean step.
    """
    length, (waited, observed) = steps_per_epoch(samples), observed_waits(samples)
    if not length or observed < FEWEST_ENDS:
        return projected, 0.0
    passes, waits = total / length, likely_waits(samples, length * step_seconds)
    wait = statistics.fmean(waits)
    expected = passes * waited / observed * wait
    share = (waited + 0.5) / (observed + 1)
    variance = wait**2 * share * (1 - share) * (passes + passes**2 / observed)
    spread = math.sqrt(variance + (passes * share) ** 2 * statistics.pvariance(waits))

    bounds: dict[str, float] = {}
    for name, side in (("low", -1), ("high", 1), ("least", -1), ("most", 1)):
        bound = getattr(projected, name)
        if bound is not None:
            distance = math.hypot(bound - projected.value, 1.96 * spread)
            bounds[name] = max(0.0, projected.value + expected + side * distance)
    return projected.model_copy(update={"value": projected.value + expected, **bounds}), expected


def add_note(result: Result, samples: Sequence[ProcessSample]) -> None:
    """Add a note on the waits that a projection contains, or that the training may have in addition."""
    projection = result.projection
    if projection is None:
        return
    waited, observed = observed_waits(samples)
    noteworthy = NOTEWORTHY * projection.build_and_fit_seconds.value
    if observed >= FEWEST_ENDS:
        if projection.epoch_end_wait_seconds > noteworthy:
            result.notes.append(
                f"The projection contains {_rounded(projection.epoch_end_wait_seconds)} s of waits at the ends of "
                f"epochs, until tf.data's autotuning thread wakes up. {waited} of {observed} short epochs waited. "
                f"To avoid it, {FIX}"
            )
        return
    most = longest_wait(result, samples)
    if most > noteworthy:
        result.notes.append(
            f"The training may take up to {_rounded(most)} s longer than projected: at the ends of epochs it may "
            f"wait until tf.data's autotuning thread wakes up. To avoid it, {FIX}"
        )


def _rounded(seconds: float) -> str:
    """Return seconds as text: whole seconds from 9.5 s on, otherwise one significant digit."""
    return f"{seconds:.0f}" if seconds >= 9.5 else f"{seconds:.1g}"


def longest_wait(result: Result, samples: Sequence[ProcessSample]) -> float:
    """Return the longest time in seconds that the projected training can wait at the ends of its epochs, or 0."""
    length, mean = steps_per_epoch(samples), result.summary.step_seconds_mean
    if result.projection is None or mean is None or not length or result.spec.loop not in ("as-written", "fit"):
        return 0.0
    if not can_wait(result.environment.tensorflow or "") or merged_facts(samples).iterator_ends == []:
        return 0.0  # [] if one iterator serves all epochs
    return max(likely_waits(samples, length * mean.value)) * result.projection.steps / length


def likely_waits(samples: Sequence[ProcessSample], steps_seconds: float) -> list[float]:
    """Return how long an epoch waits if it waits, in seconds, for `AGES` equally likely ages of its iterator.

    Keras drops the iterator of an epoch when the next epoch starts, after validation and callbacks. If only some epochs
    are validated, the wait is the average over both kinds.

    Args:
        samples: the processes that the projection is computed from.
        steps_seconds: seconds of the steps of an epoch.
    """
    end, validation = (_mean_phase(samples, name) for name in ("epoch_end", "validation"))
    plain = steps_seconds + end
    validated = merged_facts(samples).validated_epochs or 0.0
    factors = map(math.exp, statistics.NormalDist(0.0, _spread(samples)).quantiles(AGES + 1))
    return [
        validated * seconds_until_wake_up(factor * (plain + validation))
        + (1 - validated) * seconds_until_wake_up(factor * plain)
        for factor in factors
    ]


def _mean_phase(samples: Sequence[ProcessSample], name: Phase) -> float:
    """Return the mean seconds of a phase, of the processes that timed it. 0 if none did."""
    seconds = [sample.phases[name] for sample in samples if name in sample.phases]
    return statistics.fmean(seconds) if seconds else 0.0


def _spread(samples: Sequence[ProcessSample]) -> float:
    """Return the standard deviation of the logarithm of the length of a training's epochs.

    The training is one more process. It differs from the mean as processes do, and the mean itself is an estimate.
    """
    steps = [mean_step(series.blocks) for sample in samples if (series := main_series(sample))]
    logs = [math.log(step) for step in steps if 0 < step < math.inf]
    return max(LEAST_SPREAD, statistics.stdev(logs) * math.sqrt(1 + 1 / len(logs)) if len(logs) > 1 else 0.0)
