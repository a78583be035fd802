"""Observes Keras: the calls of `fit` through the hook, and `train_on_batch`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from bench.worker.script.calls import Observation


def observe(seen: Observation) -> None:
    """Count each `train_on_batch` as a step, and keep the inner calls of Keras' own loops from counting.

    Install it after the hook into `fit`, so that it is the outermost wrapper.
    """
    model = seen.tf.keras.Model
    for name in ("fit", "train_on_batch", "test_on_batch", "predict_on_batch"):
        setattr(model, name, _nested(seen, getattr(model, name), name))


def _nested(seen: Observation, original: Callable[..., Any], name: str) -> Callable[..., Any]:
    models: dict[int, int] = {}

    @functools.wraps(original)
    def devbench_call(model: Any, *args: Any, **kwargs: Any) -> Any:
        outermost = not seen.depth
        if outermost and name == "train_on_batch":
            seen.sink.starting("train-on-batch")
        seen.depth += 1
        try:
            returned = original(model, *args, **kwargs)
        finally:
            seen.depth -= 1
        if outermost and name == "train_on_batch":
            number = models.setdefault(id(model), len(models))
            seen.sink.step(seen.call("train-on-batch", name, str(number)), 1, returned, model)
        return returned

    return devbench_call
