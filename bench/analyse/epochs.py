"""A training's epochs: how long they are, and what may be lost at their ends, which no projection holds.

Where an epoch ends its iterator of `tf.data`, TensorFlow 2.21 wakes the iterator's autotuning thread and waits for it;
now and then that thread looks too early and sleeps on until its next turn: 10 ms after the iterator's start, then after
twice as long each time, up to a minute (`OptimizeLoop` in its `core/framework/model.cc`; what was measured stands in
benchmarks/README.md). TensorFlow 2.10 was not seen to.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.analyse import stats
from bench.machine.environment import at
from bench.result import ProcessSample, Result

WORTH_TELLING = 0.03
"""Share of a projection from which on it is told what it may lack."""


def steps(samples: Sequence[ProcessSample]) -> int:
    """Steps of one pass over the data, a partial batch's among them; 0 where there are no epochs."""
    epoch = stats.fact(samples, "epoch") or {}
    return int(epoch.get("batches", 0)) + bool(epoch.get("rest"))


def note(result: Result, samples: Sequence[ProcessSample]) -> None:
    """Says beside a projection what it may lack."""
    still = most(result, samples)
    if result.projection is not None and still > WORTH_TELLING * result.projection.article_seconds.value:
        result.notes.append(
            f"The projected training may stand still for up to {still:.0f} s more, at its epochs' ends, until "
            "tf.data's autotuning wakes up; `autotune.enabled = False` in a dataset's options switches it off."
        )


def most(result: Result, samples: Sequence[ProcessSample]) -> float:
    """Seconds for which the projected training may stand still besides, at most: 0 where it has no such epochs."""
    length, mean = steps(samples), result.summary.step_seconds_mean
    version = str(at(result.environment, ("framework", "tensorflow"))).split(".")
    if result.projection is None or mean is None or not length or result.spec.loop not in ("as-written", "fit"):
        return 0.0
    if not all(each.isdigit() for each in version[:2]) or [int(each) for each in version[:2]] < [2, 21]:
        return 0.0
    age, turn, pause = length * mean.value, 0.0, 0.01
    while turn < age:
        turn += pause
        pause = min(2 * pause, 60.0)
    return (turn - age) * result.projection.steps / length
