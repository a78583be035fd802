"""A hook into every `fit`. It wraps the function that `fit` calls for each step, which does not slow the steps.

A batch callback would cost 3 to 6% of a 1 ms step, and makes Keras 3 synchronous. Wrapping the result of
`make_train_function` costs one call per step and leaves the user's call as it is. The class is patched, so a `fit`
anywhere in a user's file is observed, with Keras 2.10 and Keras 3.
"""

from __future__ import annotations

import inspect
import math
import time
import weakref
from collections.abc import Callable
from typing import Any

from bench.worker.protocol import PhaseEnded
from bench.worker.timed_loop import Finished
from bench.worker.what_ifs import WhatIfs


class FitHook:
    """Observes the steps of the program's `fit`.

    Args:
        tf: TensorFlow.
        on_first: is called with a model before its first step.
        send: sends an event to the parent.
        what_ifs: the what-ifs to apply to each `fit`.

    Attributes:
        model: the model that is trained. None before its first step.
        iterator: the input iterator of the last step, once no more steps are wanted. None before that: the program owns
            it and drops it when its epoch ends.
        make_train_function: Keras' own method, unpatched.
        train_function: the train function of the latest step, without the wrapper.
        dataset: the `tf.data.Dataset` that Python iterated over last, in Keras or elsewhere.
        arguments: arguments of the latest `fit`, by name.
        on_step: is called after each step with `(logs, steps)`, normally the timed loop's `tick`.
        passive: whether steps are not observed, because the program yields its own.
        iterator_starts: for each iterator that steps read from, when it was created and when its first step began.
    """

    def __init__(
        self, tf: Any, on_first: Callable[[Any], None], send: Callable[[Any], None], what_ifs: WhatIfs
    ) -> None:
        self.model: Any = None
        self.iterator: Any = None
        self.train_function: Any = None
        self.dataset: Any = None
        self.arguments: dict[str, Any] = {}
        self.on_step: Callable[[Any, int], None] = lambda logs, steps: None
        self.passive = False
        self.iterator_starts: list[tuple[float, float]] = []
        self._tf = tf
        self._on_first = on_first
        self._send = send
        self._fit_start = 0.0
        self._iterator_created = 0.0
        self._latest_iterator: Callable[[], Any] = lambda: None
        self._steps_of_epoch = 0
        self.make_train_function = tf.keras.Model.make_train_function
        self._patch_fit(what_ifs)
        self._patch_make_train_function()
        self._patch_dataset()

    def _patch_fit(self, what_ifs: WhatIfs) -> None:
        original = self._tf.keras.Model.fit
        signature = inspect.signature(original)
        hook = self

        def fit(model: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                arguments = dict(signature.bind(model, *args, **kwargs).arguments)
            except TypeError:  # a wrong call, which Keras reports in its own words
                return original(model, *args, **kwargs)
            del arguments["self"]
            hook.arguments = what_ifs.fit(model, arguments)
            hook._fit_start = time.perf_counter()
            return original(model, **hook.arguments)

        self._tf.keras.Model.fit = fit

    def _patch_make_train_function(self) -> None:
        hook = self

        def make_train_function(model: Any, force: bool = False) -> Any:
            returned = hook.make_train_function(model, force=force)
            function = model.train_function if returned is None else returned
            if not hook.passive and not hasattr(function, "devbench_original"):
                function = hook._wrap(model, function)
            model.train_function = function
            return function

        self._tf.keras.Model.make_train_function = make_train_function

    def _patch_dataset(self) -> None:
        original = self._tf.data.Dataset.__iter__
        hook = self

        def iterate(dataset: Any) -> Any:
            hook.dataset = dataset
            iterator = original(dataset)
            hook._iterator_created = time.perf_counter()
            return iterator

        self._tf.data.Dataset.__iter__ = iterate

    def _wrap(self, model: Any, original: Any) -> Any:
        per_call = steps_per_call(model)

        def train_function(iterator: Any) -> Any:
            if self.model is not model:
                self._first_step(model)
            if self._iterator_created:
                self.iterator_starts.append((self._iterator_created, time.perf_counter()))
                self._iterator_created = 0.0
            steps = per_call if per_call == 1 else self._steps_of_call(iterator, per_call)
            self.train_function = original
            logs = original(iterator)
            try:
                self.on_step(logs, steps)
            except Finished:
                self.iterator = iterator
                raise
            return logs

        train_function.devbench_original = original  # type: ignore[attr-defined]
        return train_function

    def _steps_of_call(self, iterator: Any, per_call: int) -> int:
        """Return the steps of a call that runs several. The last call of an epoch runs what is left of it."""
        if iterator is not self._latest_iterator():
            self._latest_iterator, self._steps_of_epoch = weakref.ref(iterator), 0
            self._length = epoch_length(self._tf, self.arguments)
        remaining = per_call if self._length is None else self._length - self._steps_of_epoch % self._length
        steps = min(per_call, remaining)
        self._steps_of_epoch += steps
        return steps

    def _first_step(self, model: Any) -> None:
        """Record the first step of a model. Everything before it was preparation."""
        if self.model is None:  # only the first start is cold; a program that starts again makes a new model
            self._send(PhaseEnded(phase="prepare", seconds=time.perf_counter() - self._fit_start))
        self.model = model
        self._on_first(model)


def epoch_length(tf: Any, arguments: dict[str, Any]) -> int | None:
    """Return the steps of one pass over the data of a call of `fit`. None if it is endless or not known."""
    data = arguments.get("x")
    if isinstance(data, tf.data.Dataset):
        count = int(data.cardinality().numpy())
        return count if count > 0 else None
    first = data[0] if isinstance(data, (list, tuple)) else data
    if first is None or not hasattr(first, "__len__"):
        return None
    examples = len(first) - int(len(first) * float(arguments.get("validation_split") or 0.0))
    return max(1, math.ceil(examples / int(arguments.get("batch_size") or 32)))


def steps_per_call(model: Any) -> int:
    """Return `steps_per_execution` of a compiled model, of Keras 3 or 2.10."""
    steps = getattr(model, "steps_per_execution", None) or getattr(model, "_steps_per_execution", None) or 1
    return int(steps.numpy()) if hasattr(steps, "numpy") else int(steps)
