"""The time of each callback of the program's `fit`. Worker's side only.

Only methods that a callback overrides are wrapped, so Keras still skips the others. The wrapper costs less than a
microsecond per call.
"""

from __future__ import annotations

import functools
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

from bench.model.facts import WHOLE_DATA_CALLS, CallbackTime, CallbackTimes

STEP_METHODS = ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end")
"""Methods that Keras calls for each step."""

EPOCH_METHODS = ("on_epoch_begin", "on_epoch_end")
"""Methods that Keras calls for each epoch."""

NOT_TIMED = ("History",)
"""Callbacks that Keras adds to every `fit`. They take no time."""


class CallbackTimer:
    """Times the callbacks of each `fit` that counts, from its creation on.

    Args:
        tf: TensorFlow.
        counts: returns whether the `fit` that runs counts.
    """

    def __init__(self, tf: Any, counts: Callable[[], bool] = lambda: True) -> None:
        self._counts = counts
        self._step_seconds: dict[str, float] = {}
        self._epoch_seconds: dict[str, list[float]] = {}
        self._calls: dict[str, set[str]] = {}
        self._running = ""  # the callback that is being timed
        self._thread = threading.get_ident()
        self._base = tf.keras.callbacks.Callback
        self._patch_callback_list(tf.keras.callbacks.CallbackList)
        self._patch_model(tf.keras.Model)

    def read(self, steps: int) -> CallbackTimes | None:
        """Return what was timed, in seconds per step and per epoch. None if there was no step.

        Args:
            steps: steps of every `fit` that counts, since the worker started.
        """
        if not steps:
            return None
        names = dict.fromkeys([*self._step_seconds, *self._epoch_seconds])
        return CallbackTimes(
            callbacks=[
                CallbackTime(
                    name=name,
                    step_seconds=self._step_seconds.get(name, 0.0) / steps,
                    epoch_seconds=_usual(self._epoch_seconds.get(name, [])),
                    calls=sorted(self._calls.get(name, ())),
                )
                for name in names
            ]
        )

    def _patch_callback_list(self, kind: Any) -> None:
        timer, begin = self, kind.on_train_begin

        def on_train_begin(callbacks: Any, *args: Any, **kwargs: Any) -> None:
            if not timer._running:  # the `fit` of a callback is not the program's
                for callback in callbacks.callbacks:
                    timer._wrap_methods(callback)
            begin(callbacks, *args, **kwargs)

        kind.on_train_begin = on_train_begin

    def _patch_model(self, kind: Any) -> None:
        for name in WHOLE_DATA_CALLS:
            setattr(kind, name, self._noting(name, getattr(kind, name)))

    def _noting(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return a wrapper of a model's method that notes which callback calls it."""

        @functools.wraps(original)
        def devbench_call(*args: Any, **kwargs: Any) -> Any:
            if self._running:
                self._calls.setdefault(self._running, set()).add(name)
            return original(*args, **kwargs)

        return devbench_call

    def _wrap_methods(self, callback: Any) -> None:
        name = type(callback).__name__
        if name in NOT_TIMED:
            return
        for method in (*STEP_METHODS, *EPOCH_METHODS):
            default = getattr(self._base, method)
            own = callback.__dict__.get(method, getattr(type(callback), method, default))
            if own is not default and not hasattr(own, "devbench_timed"):
                setattr(callback, method, self._timed(name, method, getattr(callback, method)))

    def _timed(self, name: str, method: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            # A method may call another one of its own. Keras may run its progress bar in a thread of its own.
            if self._running or not self._counts() or threading.get_ident() != self._thread:
                return original(*args, **kwargs)
            self._running, start = name, time.perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                seconds, self._running = time.perf_counter() - start, ""
                if method in STEP_METHODS:
                    self._step_seconds[name] = self._step_seconds.get(name, 0.0) + seconds
                elif method == "on_epoch_end":
                    self._epoch_seconds.setdefault(name, []).append(seconds)

        call.devbench_timed = True  # type: ignore[attr-defined]
        return call


def _usual(seconds: list[float]) -> float:
    """Return the median seconds. The first time may trace, so it counts only if it is alone."""
    return statistics.median(seconds[1:] or seconds) if seconds else 0.0
