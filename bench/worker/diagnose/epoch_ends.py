"""The cost of an epoch's end, measured by the user's own call of `fit` on its first few batches. Worker's side only."""

from __future__ import annotations

import math
import statistics
import time
from itertools import pairwise
from typing import Any

from bench.analyse.epoch_waits import can_wait
from bench.model.facts import IteratorEnd
from bench.worker.fit_hook import FitHook
from bench.worker.protocol import PhaseEnded
from bench.worker.rig import Rig, dataset_remainder
from bench.worker.synchronize import Synchronizer

BATCHES = 4
"""Full batches of an epoch whose end is timed."""

EPOCHS = 3
"""Epochs whose ends are timed."""

WAITS_SECONDS = 3.0
"""Time limit for counting waits, in each process."""

MOST_EPOCHS = 5
"""The most epochs of each length for counting waits."""

EPOCH_SECONDS = 0.16
"""Length of an epoch for counting waits. A wait at its end is about as long, so it stands out."""

LENGTHS = (1.0, 1.4)
"""Factors of that length. Autotuning runs when an iterator's age doubles, so at most one length ends just before it."""


def measure(rig: Rig, hook: FitHook, synchronizer: Synchronizer, time_waits: bool = True) -> None:
    """Measure the phases of an epoch's end from three short epochs. Then, if asked for, count waits (`count_waits`).

    `partial_batch` is the last step of the first epoch, and `partial_batch_again` that of the second. `epoch_end` is
    the time from an epoch's last step to the end of the next epoch's first step, less one step.
    """
    arguments = hook.arguments  # each call of `fit` replaces them
    remainder = rig.epoch.remainder if rig.epoch else 0
    if isinstance(arguments.get("x"), rig.tf.data.Dataset):
        remainder = dataset_remainder(arguments["x"])
    shortened = _shortened(rig, arguments, BATCHES, remainder)
    if shortened is None:
        return
    times: list[float] = []

    def record(logs: Any, steps: int) -> None:
        synchronizer.sync(logs)
        times.append(time.perf_counter())

    hook.on_step = record
    with rig.scope():
        hook.model.fit(**{**shortened, "epochs": EPOCHS, "verbose": 0})
    per_epoch = len(times) // EPOCHS
    if per_epoch < 3 or len(times) % EPOCHS:
        return
    gaps = [b - a for a, b in pairwise(times)]
    inner = per_epoch - 1 - bool(remainder)
    step = statistics.median(gap for e in range(EPOCHS) for gap in gaps[e * per_epoch : e * per_epoch + inner])
    ends = [gaps[e * per_epoch + per_epoch - 1] - step for e in range(EPOCHS - 1)]
    rig.send(PhaseEnded(phase="epoch_end", seconds=max(0.0, min(ends))))
    if remainder:
        rig.send(PhaseEnded(phase="partial_batch", seconds=gaps[per_epoch - 2]))
        rig.send(PhaseEnded(phase="partial_batch_again", seconds=gaps[2 * per_epoch - 2]))
    if time_waits and can_wait(rig.tf.__version__):
        count_waits(rig, hook, arguments, step, max(0.0, statistics.median(ends)))


def count_waits(rig: Rig, hook: FitHook, arguments: dict[str, Any], step: float, end: float) -> None:
    """Read the fact `iterator_ends`, from which `analyse.epoch_waits` tells how often epochs wait at their ends.

    Nothing is synchronized, because that changes how often they wait. The program's callbacks and output stay.

    Args:
        rig: the rig.
        hook: the hook into `fit`.
        arguments: the arguments of the program's own call of `fit`.
        step: seconds of a step.
        end: seconds between two epochs.
    """
    iterator_ends: list[IteratorEnd] = []
    hook.on_step = lambda logs, steps: None
    for length in LENGTHS:
        batches = max(BATCHES, math.ceil(length * EPOCH_SECONDS / step))
        epochs = min(MOST_EPOCHS, int(WAITS_SECONDS / len(LENGTHS) / (1.5 * batches * step + end)))
        shortened = _shortened(rig, arguments, batches)
        if shortened is None or epochs < 2:
            continue
        hook.iterator_starts.clear()
        with rig.scope():
            hook.model.fit(**{**shortened, "epochs": epochs})
        iterator_ends += [
            IteratorEnd(age=created - previous, gap=first_step - created)
            for (_, previous), (created, first_step) in pairwise(hook.iterator_starts)
        ]
    if iterator_ends:
        rig.facts.iterator_ends = iterator_ends


def _shortened(rig: Rig, arguments: dict[str, Any], batches: int, remainder: int = 0) -> dict[str, Any] | None:
    """Return the arguments of the program's own call of `fit` with less data. None if the data cannot be cut.

    Args:
        rig: the rig.
        arguments: the arguments of the call.
        batches: full batches to keep, or as many as there are.
        remainder: examples of a partial batch that follows them.
    """
    shortened = dict(arguments)
    data = shortened.get("x")
    if isinstance(data, rig.tf.data.Dataset):
        count = int(data.cardinality()) - bool(remainder)
        full_batches = data.take(min(batches, count) if count > 0 else batches)
        partial = data.take(1).map(lambda *batch: rig.tf.nest.map_structure(lambda part: part[:remainder], batch))
        shortened["x"] = full_batches.concatenate(partial) if remainder else full_batches
    elif hasattr(data, "shape"):
        size = int(shortened.get("batch_size") or 32)
        for name in ("x", "y"):
            if shortened.get(name) is not None:
                shortened[name] = shortened[name][: batches * size + remainder]
    else:
        return None
    shortened.pop("steps_per_epoch", None)
    return shortened
