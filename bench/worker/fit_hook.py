"""A hook into every `fit`. It wraps the function that `fit` calls for each step, which hardly slows the steps down.

A batch callback would cost 3 to 6% of a 1 ms step, and would make Keras 3 synchronous. Wrapping the result of
`make_train_function` costs one call per step and leaves the user's call as it is. The class is patched, so a `fit`
anywhere in a user's file is observed, with Keras 2.10 and Keras 3.
"""

from __future__ import annotations

import functools
import inspect
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import GeneratorType
from typing import Any, Protocol

from bench.machine import installed
from bench.worker.callback_times import CallbackTimer
from bench.worker.fit_epochs import Call, FitEpochs, epoch_of_fit, length_of_pass
from bench.worker.frames import keras_folder
from bench.worker.protocol import PhaseEnded
from bench.worker.timed_loop import Finished
from bench.worker.what_ifs import WhatIfs


class Observer(Protocol):
    """Observes the calls of the train function, the validations and the ends of epochs."""

    def before(self, call: Call) -> None:
        """Take note that a call starts."""

    def after(self, call: Call, value: Any) -> None:
        """Take note that a call returned."""

    def ran_out(self) -> None:
        """Take note that a call found no more data."""

    def validated(self, seconds: float) -> None:
        """Take note that `fit` ran its validation, which took so many seconds."""

    def end_epoch(self) -> None:
        """Take note that the callbacks for the end of an epoch have returned."""


class FitHook:
    """Observes the steps of the program's `fit`.

    Args:
        tf: TensorFlow.
        on_first: is called with a model before its first step.
        send: sends an event to the parent.
        what_ifs: the what-ifs to apply to each `fit`.

    Attributes:
        model: the model that is trained. None before its first step.
        iterator: the input iterator of the last step, once no more steps are wanted. None before that, because the
            program owns the iterator and drops it when its epoch ends.
        device: the device in whose scope the program called `fit`, such as its own `tf.device`. Empty if in none.
        make_train_function: the method of Keras, unpatched.
        train_function: the train function of the latest step, without the wrapper.
        dataset: the `tf.data.Dataset` that Python iterated over last. Iterations by Keras do not count.
        arguments: arguments of the latest `fit`, by name.
        generated: the latest batch of the generator that `fit` reads. None if it reads none.
        epochs: the epochs of the program's `fit`.
        fit_start: when the latest `fit` was called, by the clock of `time.perf_counter`.
        fit_end: when the latest observed `fit` returned, by the same clock. None before that.
        on_step: is called after each call of the train function with `(logs, steps)`, if there is no observer.
        observer: observes steps, validations and the ends of epochs. None if only `on_step` is called.
        passive: whether steps are not observed. The program may yield its own steps, or its `fit` may not be wanted.
        wanted: returns whether the `fit` that starts now is observed. None if `passive` decides for all of them.
        callback_timer: times the callbacks.
        iterator_starts: for each iterator that steps read from, the times at which it was created and its first step
            began, by the clock of `time.perf_counter`.
    """

    def __init__(
        self, tf: Any, on_first: Callable[[Any], None], send: Callable[[Any], None], what_ifs: WhatIfs
    ) -> None:
        self.model: Any = None
        self.iterator: Any = None
        self.device = ""
        self.train_function: Any = None
        self.dataset: Any = None
        self.arguments: dict[str, Any] = {}
        self.generated: Any = None
        self.epochs = FitEpochs()
        self.on_step: Callable[[Any, int], None] = lambda logs, steps: None
        self.observer: Observer | None = None
        self.passive = False
        self.wanted: Callable[[], bool] | None = None
        self.iterator_starts: list[tuple[float, float]] = []
        self._tf = tf
        self._on_first = on_first
        self._send = send
        self._pass = (0, 0)  # length of a pass over the data of the latest `fit`
        self._per_call = 1  # steps that each of its calls runs in full, as in Keras 3
        self._running = 0  # calls of fit that are running, one within the other
        self.fit_start = 0.0
        self.fit_end: float | None = None
        self._created: tuple[Callable[[], Any], float] = (lambda: None, 0.0)  # the latest iterator, and when
        self.callback_timer = CallbackTimer(tf, lambda: not self.passive)
        self.make_train_function = tf.keras.Model.make_train_function
        self._patch_fit(what_ifs)
        self._patch_evaluate()
        self._patch_make_train_function()
        self._patch_dataset()
        self._patch_callbacks()

    @contextmanager
    def unobserved(self) -> Iterator[None]:
        """Run devbench's own calls of `fit`, and keep what the hook has learned from the program's calls.

        They run in the device scope in which the program called `fit`. Their steps count in `FitEpochs.total`.
        """
        kept = self.arguments, self.epochs, self.observer, self.on_step, self._pass
        wanted, self.wanted = self.wanted, None
        passive, self.passive = self.passive, False
        self.epochs, self.observer, self.on_step = FitEpochs(), None, lambda logs, steps: None
        try:
            with self.scope():
                yield
        finally:
            kept[1].total += self.epochs.total
            self.arguments, self.epochs, self.observer, self.on_step, self._pass = kept
            self.wanted, self.passive = wanted, passive

    def scope(self) -> AbstractContextManager[Any]:
        """Return the device scope in which the program called `fit`."""
        return self._tf.device(self.device) if self.device else nullcontext()

    def _patch_fit(self, what_ifs: WhatIfs) -> None:
        original = self._tf.keras.Model.fit
        signature = inspect.signature(original)
        hook = self

        @functools.wraps(original)
        def fit(model: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                arguments = dict(signature.bind(model, *args, **kwargs).arguments)
            except TypeError:  # a wrong call, which Keras reports in its own words
                return original(model, *args, **kwargs)
            del arguments["self"]
            if hook.wanted is None:
                return hook._run_fit(original, what_ifs, model, arguments)
            kept, hook.passive = hook.passive, not hook.wanted()
            try:
                return (
                    original(model, **arguments)
                    if hook.passive
                    else hook._run_fit(original, what_ifs, model, arguments)
                )
            finally:
                hook.passive = kept

        self._tf.keras.Model.fit = fit

    def _run_fit(self, original: Callable[..., Any], what_ifs: WhatIfs, model: Any, arguments: dict[str, Any]) -> Any:
        """Run a `fit`, with its what-ifs. It is observed unless `passive` is set."""
        self.arguments = what_ifs.fit(model, arguments)
        if not self.passive:
            self.generated = None
            if isinstance(x := self.arguments.get("x"), GeneratorType):
                self.arguments = {**self.arguments, "x": self._keeping(x)}
            self._pass = length_of_pass(self._tf, self.arguments)
            if not self._running:  # a callback may call fit of another model, in another scope
                self.device = device_scope()
            self._per_call = 1 if installed.keras(self._tf).startswith("2.") else steps_per_call(model)
        self.fit_start = time.perf_counter()
        self.epochs.begin_fit()
        self._running += 1
        try:
            return original(model, **self.arguments)
        finally:
            self._running -= 1
            if not self.passive:
                self.fit_end = time.perf_counter()

    def _keeping(self, generator: Iterator[Any]) -> Iterator[Any]:
        """Yield the batches of a generator, and keep the latest one."""
        for self.generated in generator:
            yield self.generated

    def _patch_evaluate(self) -> None:
        """Time the validations of `fit`. Only they call `evaluate` with `_use_cached_eval_dataset`."""
        original, hook = self._tf.keras.Model.evaluate, self

        @functools.wraps(original)
        def evaluate(model: Any, *args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            returned = original(model, *args, **kwargs)
            if kwargs.get("_use_cached_eval_dataset") and hook.observer is not None and not hook.passive:
                hook.observer.validated(time.perf_counter() - start)
            return returned

        self._tf.keras.Model.evaluate = evaluate

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
        hook, keras = self, keras_folder(self._tf)

        def iterate(dataset: Any) -> Any:
            if not sys._getframe(1).f_code.co_filename.startswith(keras):
                hook.dataset = dataset
            iterator = original(dataset)
            hook._created = weakref.ref(iterator), time.perf_counter()
            return iterator

        self._tf.data.Dataset.__iter__ = iterate

    def _patch_callbacks(self) -> None:
        """Notice when an epoch starts and when its callbacks have returned, by Keras' own list of callbacks."""
        kind, hook = self._tf.keras.callbacks.CallbackList, self
        begin, end = kind.on_epoch_begin, kind.on_epoch_end

        def on_epoch_begin(callbacks: Any, epoch: int, *args: Any, **kwargs: Any) -> None:
            hook._begin_epoch(getattr(callbacks, "params", None) or {}, epoch)
            begin(callbacks, epoch, *args, **kwargs)

        def on_epoch_end(callbacks: Any, *args: Any, **kwargs: Any) -> None:
            end(callbacks, *args, **kwargs)
            hook._end_epoch()

        kind.on_epoch_begin, kind.on_epoch_end = on_epoch_begin, on_epoch_end

    def _begin_epoch(self, params: dict[str, Any], epoch: int) -> None:
        if not self.passive:
            epochs = int(params.get("epochs") or self.arguments.get("epochs") or 1)
            epoch_length = epoch_of_fit(self._pass, self.arguments, params.get("steps"), self._per_call)
            self.epochs.begin_epoch(epoch_length, epochs - epoch)

    def _end_epoch(self) -> None:
        if not self.passive:
            self.epochs.end_epoch()
            if self.observer is not None:
                self.observer.end_epoch()

    def _wrap(self, model: Any, original: Any) -> Any:
        per_call = steps_per_call(model)

        def train_function(iterator: Any) -> Any:
            if self.passive:
                return original(iterator)
            if self.model is not model:
                self._first_step(model)
            if self._created[0]() is iterator:  # and not the iterator of a validation
                self.iterator_starts.append((self._created[1], time.perf_counter()))
                self.epochs.iterator_gap = time.perf_counter() - self._created[1]
                self._created = (lambda: None, 0.0)
            observer, call = self.observer, self.epochs.next_call(per_call)
            self.train_function = original
            if observer is not None:
                observer.before(call)
            try:
                logs = original(iterator)
            except (StopIteration, self._tf.errors.OutOfRangeError):
                if observer is not None:
                    observer.ran_out()
                raise
            self.epochs.advance(call)
            try:
                if observer is not None:
                    observer.after(call, logs)
                else:
                    self.on_step(logs, call.steps)
            except Finished:
                self.iterator = iterator
                raise
            return logs

        train_function.devbench_original = original  # type: ignore[attr-defined]
        return train_function

    def _first_step(self, model: Any) -> None:
        """Record the first step of a model. Everything in `fit` before it is the phase `prepare`."""
        if self.model is None:  # only the first start is cold: a restarted program has a new model
            self._send(PhaseEnded(phase="prepare", seconds=time.perf_counter() - self.fit_start))
        self.model = model
        self._on_first(model)


def device_scope() -> str:
    """Return the device of the scope that the caller runs in. Empty if it runs in none."""
    from tensorflow.python.eager import context

    return str(context.context().device_name or "")


def steps_per_call(model: Any) -> int:
    """Return the `steps_per_execution` of a compiled model, with Keras 3 or 2.10."""
    steps = getattr(model, "steps_per_execution", None) or getattr(model, "_steps_per_execution", None) or 1
    return int(steps.numpy()) if hasattr(steps, "numpy") else int(steps)
