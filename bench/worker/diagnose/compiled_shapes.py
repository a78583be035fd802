"""What XLA spends on batches of `fit` whose shapes it has not compiled yet. Worker's side only."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

from bench.model.facts import Recompiled
from bench.worker.examples import is_py_dataset, py_dataset_batches
from bench.worker.fit_hook import FitHook
from bench.worker.rig import Rig
from bench.worker.synchronize import Synchronizer

MOST_BATCHES = 50
SECONDS = 2.0
"""Time limit for reading batches."""

FEW = 5
"""Shapes up to which a step is not compiled again and again."""


def measure(rig: Rig, hook: FitHook, synchronizer: Synchronizer) -> None:
    """Read the fact `recompiled` of a `fit` that XLA compiles: the time that compiling for new shapes adds to a step.

    A step is compiled for batches of four shapes. The first two traces may differ, so only the others are timed.
    """
    if not rig.facts.jit_compile or hook.model is None or rig.yields:
        return
    began, by_shape, number = time.perf_counter(), dict[tuple[str, ...], Any](), 0
    for batch in islice(_batches(rig, hook), MOST_BATCHES):
        number += 1
        by_shape[tuple(str(leaf.shape) for leaf in rig.tf.nest.flatten(batch))] = batch
        if time.perf_counter() - began > SECONDS:
            break
    if len(by_shape) <= FEW:
        return
    with rig.tf.device(rig.ctx.device):
        step = rig.tf.function(hook.model.train_step, jit_compile=True, reduce_retracing=True)

        def seconds(batch: Any) -> float:
            start = time.perf_counter()
            synchronizer.sync(step(batch))
            return time.perf_counter() - start

        first = [(seconds(batch), seconds(batch)) for batch in islice(by_shape.values(), 4)]
    compiling = [max(0.0, new - known) for new, known in first[2:]]
    before, after = next((a, b) for a, b in zip(*list(by_shape)[:2], strict=True) if a != b)
    rig.facts.recompiled = Recompiled(
        shapes=len(by_shape),
        calls=number,
        seconds=sum(compiling) / len(compiling) * len(by_shape) / number,
        before=before,
        after=after,
    )


def _batches(rig: Rig, hook: FitHook) -> Iterator[Any]:
    """Yield the batches of `fit` in their form, if it reads a dataset."""
    data = hook.arguments.get("x")
    if isinstance(data, rig.tf.data.Dataset):
        yield from data
    elif is_py_dataset(rig.tf, data):
        yield from py_dataset_batches(data)
