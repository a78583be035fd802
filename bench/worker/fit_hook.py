"""Seeing the steps of any `fit` without slowing it: the function it calls for each step is wrapped.

A batch callback would cost 3 to 6% on a 1 ms step, and turns Keras 3 synchronous. Wrapping what
`make_train_function` returns costs one method call a step and leaves the user's call as it is. The class
is patched, so a `fit` anywhere in a user's file is seen, on Keras 2.10 and Keras 3 alike.
"""

from __future__ import annotations

import inspect
import math
import time
import weakref
from collections.abc import Callable
from typing import Any

from bench.worker.protocol import PhaseDone
from bench.worker.timed_loop import Finished
from bench.worker.what_ifs import WhatIfs


class Watch:
    """What was seen of the program's `fit`.

    Attributes:
        model: the model being trained, once a step was seen.
        iterator: the input iterator of its last step, once no more are wanted; until then the program owns it, and
            ends it when its epoch does.
        plain: the train function of its latest step, unwrapped.
        dataset: the `tf.data.Dataset` that Python iterated over last, Keras' and devbench's own among them.
        call: the arguments of its latest `fit`, by name.
        on_step: what is told of each step, `(logs, steps)`; normally the conductor.
        resting: whether steps are left alone, because the program tells of its own.
        renewed: of each iterator that steps read, when it was made and when the first of them began.
    """

    def __init__(
        self, tf: Any, on_first: Callable[[Any], None], send: Callable[[Any], None], what_ifs: WhatIfs
    ) -> None:
        self.model: Any = None
        self.iterator: Any = None
        self.plain: Any = None
        self.dataset: Any = None
        self.call: dict[str, Any] = {}
        self.on_step: Callable[[Any, int], None] = lambda logs, steps: None
        self.resting = False
        self.renewed: list[tuple[float, float]] = []
        self._made = 0.0
        self._on_first = on_first
        self._send = send
        self._begun = 0.0
        self._tf = tf
        self._latest: Callable[[], Any] = lambda: None
        self._in_epoch = 0
        base = tf.keras.Model
        named = inspect.signature(base.fit)
        self.make = base.make_train_function
        plain_fit, watch = base.fit, self

        def fit(model: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                given = dict(named.bind(model, *args, **kwargs).arguments)
            except TypeError:  # a wrong call, which Keras says in its own words
                return plain_fit(model, *args, **kwargs)
            del given["self"]
            watch.call = what_ifs.fit(model, given)
            watch._begun = time.perf_counter()
            return plain_fit(model, **watch.call)

        def make_train_function(model: Any, force: bool = False) -> Any:
            made = watch.make(model, force=force)
            function = model.train_function if made is None else made
            if not watch.resting and not hasattr(function, "devbench_plain"):
                function = watch._wrap(model, function)
            model.train_function = function
            return function

        plain_iter = tf.data.Dataset.__iter__

        def iterate(dataset: Any) -> Any:
            watch.dataset = dataset
            found = plain_iter(dataset)
            watch._made = time.perf_counter()
            return found

        tf.data.Dataset.__iter__ = iterate
        base.fit = fit
        base.make_train_function = make_train_function

    def _wrap(self, model: Any, plain: Any) -> Any:
        steps = steps_a_call(model)

        def train_function(iterator: Any) -> Any:
            if self.model is not model:
                self._first(model)
            if self._made:
                self.renewed.append((self._made, time.perf_counter()))
                self._made = 0.0
            done = steps if steps == 1 else self._several(iterator, steps)
            self.plain = plain
            logs = plain(iterator)
            try:
                self.on_step(logs, done)
            except Finished:
                self.iterator = iterator
                raise
            return logs

        train_function.devbench_plain = plain  # type: ignore[attr-defined]
        return train_function

    def _several(self, iterator: Any, steps: int) -> int:
        """How many steps a call of several does: the last one of an epoch does what is left of it."""
        if iterator is not self._latest():
            self._latest, self._in_epoch = weakref.ref(iterator), 0
            self._length = epoch_length(self._tf, self.call)
        left = steps if self._length is None else self._length - self._in_epoch % self._length
        done = min(steps, left)
        self._in_epoch += done
        return done

    def _first(self, model: Any) -> None:
        """The first step of a model: what came before it was preparation."""
        if self.model is None:  # a program that is begun again makes a new one; a start is cold only once
            self._send(PhaseDone(phase="prepare", seconds=time.perf_counter() - self._begun))
        self.model = model
        self._on_first(model)


def epoch_length(tf: Any, call: dict[str, Any]) -> int | None:
    """Steps of one pass over the data of a call of `fit`; none where it has no end or can't be told."""
    data = call.get("x")
    if isinstance(data, tf.data.Dataset):
        count = int(data.cardinality().numpy())
        return count if count > 0 else None
    first = data[0] if isinstance(data, (list, tuple)) else data
    if first is None or not hasattr(first, "__len__"):
        return None
    kept = len(first) - int(len(first) * float(call.get("validation_split") or 0.0))
    return max(1, math.ceil(kept / int(call.get("batch_size") or 32)))


def steps_a_call(model: Any) -> int:
    """`steps_per_execution` of a compiled model, Keras 3 or 2.10."""
    steps = getattr(model, "steps_per_execution", None) or getattr(model, "_steps_per_execution", None) or 1
    return int(steps.numpy()) if hasattr(steps, "numpy") else int(steps)
