"""The epochs of a program's `fit`: which steps are the first or the last of an epoch, and how many the program plans.

Keras tells its callbacks when an epoch starts and ends, and how many steps it has. The arguments of `fit` are used only
for what Keras does not tell. Worker's side only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from bench.model.facts import Epoch
from bench.worker.examples import is_py_dataset, py_dataset_length, py_dataset_remainder
from bench.worker.stages import dataset_remainder


@dataclass(frozen=True)
class Call:
    """One call of the train function.

    Attributes:
        steps: steps that it runs.
        first: whether it is the first of its epoch.
        last: whether it is the last full call of its epoch. At most a partial batch, or fewer steps, follow.
        partial: whether it is the step on the partial batch.
        counts: whether it runs steps like all others. The first call of an epoch may wait for input, so it does not
            count, unless it is the only full call. A call with the partial batch or with fewer steps than the others
            does not count, because it does other work.
    """

    steps: int
    first: bool = False
    last: bool = False
    partial: bool = False
    counts: bool = True


@dataclass
class FitPlan:
    """The steps that one call of `fit` plans.

    Attributes:
        epochs: epochs to run.
        steps: steps of an epoch. None if that is not known yet.
    """

    epochs: int
    steps: int | None


@dataclass
class ProgramSteps:
    """The steps of a run of the program that ended by itself, before devbench started it again.

    Attributes:
        run: steps that it ran.
        planned: steps that its calls of `fit` planned. None if that is not known.
    """

    run: int
    planned: int | None


@dataclass
class FitEpochs:
    """Follows the calls of the train function through the epochs of each `fit`.

    Attributes:
        plans: one for each call of `fit` since the program started.
        run: steps since the program started.
        total: steps since the worker started.
        first_run: the steps of the program's first run. None until this run ends by itself.
        fresh: whether the next call is the first of a model or of a program that started again. It may trace, so it
            does not count.
        iterator_gap: seconds from the creation of an epoch's iterator to the epoch's first step. In this time, Keras
            drops the iterator of the epoch before, which may wait.
        length: the length of every epoch, if devbench calls `fit` and knows more than Keras. None otherwise.
    """

    plans: list[FitPlan] = field(default_factory=list)
    run: int = 0
    total: int = 0
    first_run: ProgramSteps | None = None
    fresh: bool = False
    iterator_gap: float = 0.0
    length: Epoch | None = None
    _epoch: Epoch | None = None
    _active: bool = False
    _position: int = 0
    _inner: Call = field(default_factory=lambda: Call(1))

    @property
    def planned(self) -> int | None:
        """Steps that the calls of `fit` planned so far. None if that is not known."""
        lengths = [plan.steps for plan in self.plans]
        if not lengths or None in lengths:
            return None
        return sum(plan.epochs * (plan.steps or 0) for plan in self.plans)

    @property
    def epoch(self) -> Epoch | None:
        """The length of the latest epoch. None if it is not known."""
        return self._epoch

    @property
    def full_batches_left(self) -> float:
        """Full batches that are left before the partial batch of the epoch. Infinite if no partial batch is known."""
        epoch = self._epoch
        return max(0, epoch.batches - self._position) if epoch and epoch.remainder else math.inf

    def begin_fit(self) -> None:
        """Record that `fit` is called."""
        self.plans.append(FitPlan(0, None))
        self._epoch = None

    def begin_epoch(self, epoch: Epoch | None, epochs_left: int) -> None:
        """Record that an epoch starts.

        Args:
            epoch: its length. None if it is not known.
            epochs_left: epochs that are left of this `fit`, including this one.
        """
        plan = self.plans[-1] if self.plans else FitPlan(0, None)
        plan.epochs = plan.epochs or epochs_left
        self._epoch = self.length or epoch or self._epoch
        plan.steps = self._epoch.steps if self._epoch else None
        self._active, self._position, self.iterator_gap = True, 0, 0.0

    def end_epoch(self) -> None:
        """Record that an epoch ended. If its length was not known, it is now."""
        if self._epoch is None and self._position:
            self._epoch = Epoch(batches=self._position, remainder=0)
            if self.plans:
                self.plans[-1].steps = self._position
        self._active = False

    def end_run(self) -> None:
        """Record that the program ended by itself."""
        if self.first_run is None:
            self.first_run = ProgramSteps(self.run, self.planned)

    def end_program(self) -> None:
        """Record that the program ended by itself and will start again."""
        self.end_run()
        self.plans, self.run, self._epoch, self._active = [], 0, None, False

    def next_call(self, per_call: int) -> Call:
        """Return the next call of the train function.

        Args:
            per_call: steps that a call runs, unless the epoch has fewer left.
        """
        call = self._call(per_call)
        if self.fresh:
            self.fresh, call = False, replace(call, counts=False)
        return call

    def advance(self, call: Call) -> None:
        """Record that a call returned."""
        self._position += call.steps
        self.run += call.steps
        self.total += call.steps

    def _call(self, per_call: int) -> Call:
        if self._inner.steps != per_call:
            self._inner = Call(per_call)
        if not self._active:  # `train_on_batch` calls the train function too
            return self._inner
        epoch, index = self._epoch, self._position // per_call
        if epoch is None:
            return self._inner if index else Call(per_call, first=True, counts=False)
        calls = (epoch.batches or epoch.steps) // per_call
        if 0 < index < calls - 1:
            return self._inner
        steps = max(1, min(per_call, epoch.steps - self._position))
        if 0 < calls <= index:
            return Call(steps, partial=steps == 1 and bool(epoch.remainder), counts=False)
        return Call(steps, first=not index, last=index >= calls - 1, counts=bool(index) or calls <= 1)


def epoch_of_fit(
    length: tuple[int, int], arguments: dict[str, Any], steps: float | None = None, per_call: int = 1
) -> Epoch | None:
    """Return the length of an epoch of a call of `fit`. None if it is endless or not known.

    Args:
        length: of one pass over the data, by `length_of_pass`.
        arguments: the arguments of the call, by name.
        steps: steps of an epoch as Keras counts them. None if they follow from the arguments and the data.
        per_call: steps that each call runs as long as there is data, even if these are more than `steps_per_epoch`.
    """
    count, remainder = length
    known = math.ceil(steps or arguments.get("steps_per_epoch") or count)  # Keras 2 accepts fractions of steps
    if not known:
        return None
    if arguments.get("steps_per_epoch"):
        full = math.ceil(known / per_call) * per_call
        known = full if not count else max(known, min(full, count))
    remainder = remainder if known == count else 0
    return Epoch(batches=known - bool(remainder), remainder=remainder)


def length_of_pass(tf: Any, arguments: dict[str, Any]) -> tuple[int, int]:
    """Return the batches of one pass over the data of a call of `fit`, and the examples in its partial batch.

    Args:
        tf: TensorFlow.
        arguments: the arguments of the call, by name.

    Returns:
        0 batches if the data is endless or its length is not known. 0 examples if no partial batch is known.
    """
    data = arguments.get("x")
    if isinstance(data, tf.data.Dataset):
        return max(0, int(data.cardinality().numpy())), dataset_remainder(data)
    if is_py_dataset(tf, data):
        in_order = not arguments.get("shuffle", True)  # otherwise, fit shuffles the batches, the partial one included
        return py_dataset_length(data) or 0, py_dataset_remainder(tf, data) if in_order else 0
    arrays = [part for part in tf.nest.flatten(data) if hasattr(part, "shape") and len(part.shape)]
    examples, size = training_examples(arrays, arguments), int(arguments.get("batch_size") or 32)
    return (math.ceil(examples / size), examples % size) if examples else (0, 0)


def validated_epochs(arguments: dict[str, Any]) -> float:
    """Return the share of the epochs of a call of `fit` after which it runs the validation.

    Args:
        arguments: the arguments of the call, by name.
    """
    if arguments.get("validation_data") is None and not arguments.get("validation_split"):
        return 0.0
    before, last = int(arguments.get("initial_epoch") or 0), int(arguments.get("epochs") or 1)
    frequency = arguments.get("validation_freq") or 1
    if isinstance(frequency, int):
        validated = last // frequency - before // frequency
    else:
        validated = sum(before < epoch <= last for epoch in set(frequency))
    return validated / max(1, last - before)


def training_examples(arrays: list[Any], arguments: dict[str, Any]) -> int:
    """Return how many examples of the arrays `fit` trains on: all but those that it splits off for the validation."""
    if not arrays:
        return 0
    split = 0.0 if arguments.get("validation_data") is not None else float(arguments.get("validation_split") or 0.0)
    return math.floor(int(arrays[0].shape[0]) * (1.0 - split))
