"""What a step waits for before it can compute: the copy of its batch, and the next batch of its pipeline."""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

from bench.worker import examples
from bench.worker.batches import FIT_DATA, batches, cast_float64, sliced
from bench.worker.diagnose.timing import REPEATS, median_seconds
from bench.worker.epoch_timer import EpochTimer
from bench.worker.examples import as_tuple
from bench.worker.fit_hook import FitHook, steps_per_call
from bench.worker.protocol import PhaseEnded
from bench.worker.rig import Rig
from bench.worker.synchronize import Synchronizer


def batch_copy(rig: Rig, hook: FitHook) -> None:
    """Measure the phase `batch_copy`: the copy of a batch from NumPy to the device, without reading an element back.

    The author's own loop makes its batches itself, so it has no such phase.
    """
    import numpy as np

    example = None if rig.yields else example_batch(rig, hook)
    if example is None:
        return
    tf = rig.tf
    arrays = [np.array(part) for part in tf.nest.flatten(example)]

    def read(parts: list[Any]) -> None:
        for part in parts:
            tf.reshape(part, [-1])[-1].numpy()

    with tf.device(rig.ctx.device):
        on_device = [tf.identity(tf.constant(a)) for a in arrays]
        read(on_device)
        without_copy = median_seconds(lambda: read([tf.identity(part) for part in on_device]))
        with_copy = median_seconds(lambda: read([tf.identity(tf.constant(a)) for a in arrays]))
    rig.send(PhaseEnded(phase="batch_copy", seconds=max(0.0, with_copy - without_copy)))


def example_batch(rig: Rig, hook: FitHook) -> tuple[Any, ...] | None:
    """Return a batch like those that the loop reads. None if there is none."""
    if rig.state.example is not None:
        return rig.state.example
    if rig.data is not None or rig.has("inputs"):
        return next(batches(rig))
    parts = [hook.arguments[name] for name in FIT_DATA if hook.arguments.get(name) is not None]
    arrays = examples.arrays(rig.tf, parts) if parts else None
    if arrays is None:
        return None
    size = int(hook.arguments.get("batch_size") or 32)
    return cast_float64(rig.tf, sliced(rig.tf, arrays, 0, size), rig.spec.dtype)


def input_wait(rig: Rig, hook: FitHook, timer: EpochTimer, synchronizer: Synchronizer) -> None:
    """Measure the phase `input_wait`: how long the next batch takes right after a step is done.

    Each measurement takes one batch for the step and one for the wait, so the pipeline has half as much time per batch
    as in the loop. The result is an upper bound. The first step on a partial batch may compile, so it is left for
    `epoch_ends`.
    """
    iterator = hook.iterator if hook.model is not None else rig.state.iterator
    if iterator is None:
        return
    function = hook.train_function if hook.model is not None else rig.state.function

    def step(source: Any) -> Any:
        return function(source) if hook.model is not None else function(*as_tuple(next(source)))

    limits = [math.inf, math.inf]
    if hook.model is not None and not timer.partials and hook.epochs.epoch:
        limits = [hook.epochs.full_batches_left, hook.epochs.epoch.batches]
    batches_per_wait = 1 + (steps_per_call(hook.model) if hook.model is not None else 1)
    repeats = [int(min(REPEATS, limit // batches_per_wait)) for limit in limits]
    waits = _waits(rig, synchronizer, step, iterator, repeats[0])
    data = hook.arguments.get("x") if hook.model is not None else rig.data
    if not waits and isinstance(data, rig.tf.data.Dataset):  # the timed part ended where an epoch ended
        waits = _waits(rig, synchronizer, step, iter(data), repeats[1])
    if waits:
        rig.send(PhaseEnded(phase="input_wait", seconds=statistics.median(waits)))


def _waits(
    rig: Rig, synchronizer: Synchronizer, step: Callable[[Any], Any], iterator: Any, repeats: int
) -> list[float]:
    """Return the seconds until the next batch after each of some steps.

    Args:
        rig: the rig.
        synchronizer: waits for a step.
        step: runs a step with the next batch of an iterator.
        iterator: the iterator.
        repeats: number of steps. There are fewer if the epoch ends.
    """
    waits = []
    with contextlib.suppress(StopIteration, rig.tf.errors.OutOfRangeError), rig.tf.device(rig.ctx.device):
        for _ in range(repeats):
            synchronizer.sync(step(iterator))
            start = time.perf_counter()
            next(iterator)
            waits.append(time.perf_counter() - start)
    return waits
