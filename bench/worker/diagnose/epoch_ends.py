"""What an epoch's end costs, by the user's own call of `fit` on its first few batches. Worker's side only."""

from __future__ import annotations

import math
import statistics
import time
from itertools import pairwise
from typing import Any

from bench.analyse.epoch_waits import can_wait
from bench.model.facts import IteratorEnd
from bench.worker.fit_hook import Watch
from bench.worker.protocol import PhaseDone
from bench.worker.rig import Rig, left_over
from bench.worker.synchronize import Reader

WHOLE = 4
"""Batches of an epoch whose end is timed, besides one that is smaller."""

WAITS_SECONDS = 3.0
"""For seeing how often they do, in each process, at most."""

TURNS = 5
"""Epochs of each length, at most."""

LONG_ENOUGH = 0.16
"""Seconds of such an epoch: the wait at its end is about as long, and stands out from what is no wait."""

LENGTHS = (1.0, 1.4)
"""Times as long: autotuning's turns come at doubling ages, so that at most one of them ends right before a turn."""


def short_epochs(rig: Rig, watch: Watch, reader: Reader, more: bool = True) -> None:
    """Phases of an epoch's end, from three epochs; then, where more is asked for, how long they waited (`waits`).

    `partial_batch` is the last step of the first epoch, `partial_batch_again` of a later one, and `epoch_end` what
    lies between an epoch's last step and the first of the next, less one step.
    """
    call = watch.call  # each call of `fit` puts its own there
    rest = rig.epoch.remainder if rig.epoch else 0
    if isinstance(call.get("x"), rig.tf.data.Dataset):
        rest = left_over(call["x"])
    bound = _shortened(rig, call, WHOLE, rest)
    if bound is None:
        return
    times: list[float] = []

    def record(logs: Any, steps: int) -> None:
        reader.sync(logs)
        times.append(time.perf_counter())

    watch.on_step = record
    with rig.tf.device(rig.ctx.device):
        watch.model.fit(**{**bound, "epochs": 3, "verbose": 0})
    per_epoch = len(times) // 3
    if per_epoch < 3 or len(times) % 3:
        return
    gaps = [b - a for a, b in pairwise(times)]
    inner = per_epoch - 1 - bool(rest)
    step_times = [gap for e in range(3) for gap in gaps[e * per_epoch : e * per_epoch + inner]]
    usual = statistics.median(step_times)
    ends = [gaps[e * per_epoch + per_epoch - 1] - usual for e in range(2)]
    rig.send(PhaseDone(phase="epoch_end", seconds=max(0.0, min(ends))))
    if rest:
        rig.send(PhaseDone(phase="partial_batch", seconds=gaps[per_epoch - 2]))
        rig.send(PhaseDone(phase="partial_batch_again", seconds=gaps[2 * per_epoch - 2]))
    if more and can_wait(rig.tf.__version__):
        waits(rig, watch, call, usual, max(0.0, statistics.median(ends)))


def waits(rig: Rig, watch: Watch, call: dict[str, Any], step: float, end: float) -> None:
    """Fact `iterator_ends`: of short epochs the iterator's age at its end, and what passed until the next one's step.

    Nothing is synchronised, since that changes how often they wait; the program's own callbacks and output stay.

    Args:
        rig: of the program.
        watch: of its `fit`.
        call: the arguments of the program's own call of it.
        step: seconds.
        end: seconds between two epochs.
    """
    found: list[IteratorEnd] = []
    watch.on_step = lambda logs, steps: None
    for length in LENGTHS:
        batches = max(WHOLE, math.ceil(length * LONG_ENOUGH / step))
        epochs = min(TURNS, int(WAITS_SECONDS / len(LENGTHS) / (1.5 * batches * step + end)))
        bound = _shortened(rig, call, batches)
        if bound is None or epochs < 2:
            continue
        watch.renewed.clear()
        with rig.tf.device(rig.ctx.device):
            watch.model.fit(**{**bound, "epochs": epochs})
        found += [
            IteratorEnd(age=made - since, gap=stepped - made) for (_, since), (made, stepped) in pairwise(watch.renewed)
        ]
    if found:
        rig.facts.iterator_ends = found


def _shortened(rig: Rig, call: dict[str, Any], batches: int, rest: int = 0) -> dict[str, Any] | None:
    """The arguments of the program's own call of `fit`, with its data cut; none where that can't be.

    Args:
        rig: of the program.
        call: those arguments.
        batches: whole batches that are kept, or as many as there are.
        rest: examples of a smaller one that follows them.
    """
    bound = dict(call)
    if isinstance(bound.get("x"), rig.tf.data.Dataset):
        count = int(bound["x"].cardinality()) - bool(rest)
        few = bound["x"].take(min(batches, count) if count > 0 else batches)
        smaller = bound["x"].take(1).map(lambda *batch: rig.tf.nest.map_structure(lambda part: part[:rest], batch))
        bound["x"] = few.concatenate(smaller) if rest else few
    elif hasattr(bound.get("x"), "shape"):
        size = int(bound.get("batch_size") or 32)
        for name in ("x", "y"):
            if bound.get(name) is not None:
                bound[name] = bound[name][: batches * size + rest]
    else:
        return None
    bound.pop("steps_per_epoch", None)
    return bound
