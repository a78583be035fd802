"""The cost of an epoch's end, measured by the user's own call of `fit` on its first few batches. Worker's side only."""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from bench.analyse.epoch_waits import can_wait
from bench.model.facts import Epoch, IteratorEnd
from bench.worker import examples
from bench.worker.batches import FIT_DATA, sliced
from bench.worker.epoch_timer import EpochEnd, EpochTimer
from bench.worker.fit_epochs import training_examples
from bench.worker.fit_hook import FitHook
from bench.worker.losses import Losses
from bench.worker.protocol import Finish, Note
from bench.worker.rig import Rig
from bench.worker.synchronize import Synchronizer
from bench.worker.timed_loop import Finished

BATCHES = 4
"""Full batches of an epoch whose end is timed."""

EPOCHS = 3
"""Epochs whose ends are timed."""

FEWEST_ENDS = 2
"""Ends of epochs that are enough. The first one may trace, for example the validation."""

ENDS_SECONDS = 3.0
"""Time limit for timing ends, once there are enough."""

WAITS_SECONDS = 3.0
"""Time limit for counting waits, in each process."""

MOST_EPOCHS = 5
"""The most epochs of each length for counting waits."""

EPOCH_SECONDS = 0.16
"""Length of an epoch for counting waits. A wait at its end is about as long, so it stands out."""

LENGTHS = (1.0, 1.4)
"""Factors of that length. Autotuning runs when an iterator's age doubles, so at most one length ends just before it."""


class StepTimes:
    """A clock that synchronizes and times each step.

    Args:
        sync: waits for a step.
        ends: the ends of epochs that were timed.
    """

    counts_all = False

    def __init__(self, sync: Callable[[Any], float], ends: Sequence[EpochEnd]) -> None:
        self.seconds: list[float] = []
        self.paused = True
        self._sync = sync
        self._ends = ends
        self._began = self._start = time.perf_counter()

    def tick(self, value: Any, steps: int = 1) -> None:
        """Time a call. End the program once enough epochs ended in a long time."""
        self._sync(value)
        self.seconds.append((time.perf_counter() - self._start) / steps)
        self.resume()
        if len(self._ends) >= FEWEST_ENDS and self._start - self._began > ENDS_SECONDS:
            raise Finished(None)

    def pause(self, value: Any) -> None:
        """Stop the clock."""
        self._sync(value)
        self.paused = True

    def resume(self) -> None:
        """Start the clock of the next step."""
        self.paused, self._start = False, time.perf_counter()

    def discard(self) -> None:
        """Nothing: there are no blocks."""


def measure(
    rig: Rig, hook: FitHook, timer: EpochTimer, step_seconds: float, synchronizer: Synchronizer, order: Finish
) -> None:
    """Report the phases of epochs. Then, if asked for, count waits (`count_waits`).

    If epochs ended in the timed part, the phases are known. Otherwise `EPOCHS` short epochs show them: the user's own
    call of `fit` on its first few batches, with its validation and callbacks.
    """
    if len(timer.ends) >= FEWEST_ENDS:
        timer.send_phases(rig.send, step_seconds)
        if can_wait(rig.tf.__version__):
            rig.facts.iterator_ends = _iterator_ends(hook)
        return
    arguments = hook.arguments  # each call of `fit` replaces them
    epoch = hook.epochs.epoch
    remainder = epoch.remainder if epoch else 0
    shortened = _shortened(rig, arguments, BATCHES, remainder)
    if shortened is None:
        note = "The ends of epochs were not timed, because the input of fit cannot be shortened."
        rig.send(Note(text=f"{note} The projection leaves them out."))
        return
    ends, partials = list(timer.ends), list(timer.partials)
    times = StepTimes(synchronizer.sync, ends)
    short = EpochTimer(times, hook.epochs, synchronizer.sync, Losses())
    short.ends, short.partials = ends, partials
    hook.observer = short
    if epoch and remainder:  # Keras does not know it of a shortened dataset
        hook.epochs.length = Epoch(batches=min(BATCHES, epoch.batches), remainder=remainder)
    with rig.scope(), contextlib.suppress(Finished):
        hook.model.fit(**{**shortened, "epochs": EPOCHS, "verbose": 0})
    hook.observer, hook.epochs.length = None, None
    if not ends or not times.seconds:
        return
    step = statistics.median(times.seconds)
    short.send_phases(rig.send, step)
    if order.time_waits and can_wait(rig.tf.__version__):
        count_waits(rig, hook, arguments, step, ends[-1].end)


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
        iterator_ends += _iterator_ends(hook)
    if iterator_ends:
        rig.facts.iterator_ends = iterator_ends


def _iterator_ends(hook: FitHook) -> list[IteratorEnd]:
    """Return the ends of the iterators that the hook has seen, except the last one, which may still be used."""
    return [
        IteratorEnd(age=created - previous, gap=first_step - created)
        for (_, previous), (created, first_step) in pairwise(hook.iterator_starts)
    ]


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
        is_tuple = isinstance(data.element_spec, tuple)
        partial = data.take(1).map(lambda *batch: sliced(rig.tf, batch if is_tuple else batch[0], 0, remainder))
        shortened["x"] = full_batches.concatenate(partial) if remainder else full_batches
    elif examples.is_py_dataset(rig.tf, data):
        shortened["x"] = _first_batches(rig.tf, data, batches)
    elif data is not None and examples.arrays(rig.tf, data) is not None:
        size = int(shortened.get("batch_size") or 32)
        trained = training_examples(rig.tf.nest.flatten(data), arguments)
        parts = {name: shortened[name] for name in FIT_DATA if shortened.get(name) is not None}
        if shortened.pop("validation_split", None) and shortened.get("validation_data") is None:
            shortened["validation_data"] = tuple(sliced(rig.tf, part, trained, None) for part in parts.values())
        stop = min(trained, batches * size + remainder)
        shortened |= {name: sliced(rig.tf, part, 0, stop) for name, part in parts.items()}
    else:
        return None
    shortened.pop("steps_per_epoch", None)
    return shortened


def _first_batches(tf: Any, data: Any, batches: int) -> Any:
    """Return a Keras `PyDataset` of the first batches of another one."""
    length = examples.py_dataset_length(data)
    kept = batches if length is None else min(batches, length)

    class FirstBatches(getattr(tf.keras.utils, "PyDataset", None) or tf.keras.utils.Sequence):  # type: ignore[misc]
        def __len__(self) -> int:
            return kept

        def __getitem__(self, index: int) -> Any:
            return data[index]

    return FirstBatches()
