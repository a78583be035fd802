"""A training's epochs: how long they are, and how long they wait for their ends.

Where an epoch ends its iterator of `tf.data`, TensorFlow 2.21 wakes the iterator's autotuning thread and waits for it;
some times that thread looks too early and sleeps on until its next turn: 10 ms after the iterator's first step, then
after twice as long each time, up to a minute (`OptimizeLoop` in its `core/framework/model.cc`; what was measured stands
in benchmarks/README.md). TensorFlow 2.10 was not seen to. How often that happens does not depend on how long an epoch
is, so it is seen from short ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.analyse import stats
from bench.model.result import Interval, ProcessSample, Result

WAITING_SINCE = (2, 21)
"""TensorFlow's version from which on that was seen."""

WORTH_TELLING = 0.03
"""Share of a projection from which on it is told what it waits for, or may."""

CLEAR = 0.03
"""Seconds that a wait must have been able to take, so that it can be told from what is none."""

FEWEST = 8
"""Epochs' ends from which on it is said how often they wait."""


def steps(samples: Sequence[ProcessSample]) -> int:
    """Steps of one pass over the data, a partial batch's among them; 0 where there are no epochs."""
    epoch = stats.facts(samples).epoch
    return epoch.steps if epoch else 0


def may_wait(version: str) -> bool:
    """Whether iterators of this TensorFlow were seen to wait at their ends."""
    numbers = version.split(".")[:2]
    return all(each.isdigit() for each in numbers) and tuple(map(int, numbers)) >= WAITING_SINCE


def until_turn(age: float) -> float:
    """Seconds from an iterator's age until autotuning's next turn."""
    turn, pause = 0.0, 0.01
    while turn < age:
        turn += pause
        pause = min(2 * pause, 60.0)
    return turn - age


def seen(samples: Sequence[ProcessSample]) -> tuple[int, int]:
    """How many short epochs waited at their ends, and of how many that is known."""
    ends = [(until_turn(each.age), each.gap) for s in samples for each in s.facts.iterator_ends or ()]
    clear = [gap > 0.5 * wait for wait, gap in ends if wait > CLEAR]
    return sum(clear), len(clear)


def with_waits(
    projected: Interval, samples: Sequence[ProcessSample], total: int, step: float
) -> tuple[Interval, float]:
    """A projection with what its training is expected to wait for at its epochs' ends, and that alone, in seconds.

    How often a training waits is itself a matter of chance, and the share of short epochs that did is known with an
    error, so the interval becomes wider by both (the binomial's variance, with H. Jeffreys' prior).

    Args:
        projected: seconds, without waits.
        samples: processes that it is made of.
        total: steps of the training.
        step: seconds of a mean step.
    """
    length, (waited, of) = steps(samples), seen(samples)
    if not length or of < FEWEST:
        return projected, 0.0
    passes, wait = total / length, until_turn(length * step)
    expected = passes * waited / of * wait
    share = (waited + 0.5) / (of + 1)
    spread = wait * math.sqrt(share * (1 - share) * (passes + passes**2 / of))
    value, wider = projected.value + expected, {}
    if projected.low is not None and projected.high is not None:
        half = math.hypot(projected.high - projected.value, 1.96 * spread)
        wider = {"low": max(0.0, value - half), "high": value + half}
    return projected.model_copy(update={"value": value, **wider}), expected


def note(result: Result, samples: Sequence[ProcessSample]) -> None:
    """Says beside a projection what of it is waited for, or may have to be."""
    projection = result.projection
    if projection is None:
        return
    waited, of = seen(samples)
    off = "`autotune.enabled = False` in a dataset's options switches it off."
    worth = WORTH_TELLING * projection.build_and_fit_seconds.value
    if of >= FEWEST:
        if projection.epoch_end_wait_seconds > worth:
            result.notes.append(
                f"Of the projected training, {projection.epoch_end_wait_seconds:.0f} s are likely to be lost at its "
                f"epochs' ends, until tf.data's autotuning wakes up: {waited} of {of} short epochs waited for it. {off}"
            )
        return
    still = most(result, samples)
    if still > worth:
        result.notes.append(
            f"The projected training may stand still for up to {still:.0f} s more, at its epochs' ends, until "
            f"tf.data's autotuning wakes up; {off}"
        )


def most(result: Result, samples: Sequence[ProcessSample]) -> float:
    """Seconds for which the projected training may stand still besides, at most: 0 where it has no such epochs."""
    length, mean = steps(samples), result.summary.step_seconds_mean
    if result.projection is None or mean is None or not length or result.spec.loop not in ("as-written", "fit"):
        return 0.0
    if not may_wait(result.environment.tensorflow or ""):
        return 0.0
    return until_turn(length * mean.value) * result.projection.steps / length
