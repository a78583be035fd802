"""Observes inference: the batches of `predict` and `evaluate`, and outermost calls of a Keras model."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

from bench.model.recognition import StepKind
from bench.worker.fit_epochs import length_of_pass
from bench.worker.fit_hook import steps_per_call
from bench.worker.script.calls import Observation
from bench.worker.script.values import leaves


def observe(seen: Observation) -> None:
    """Count each batch of the script's own `predict` and `evaluate`, and each outermost call of a model, as a step."""
    model = seen.tf.keras.Model
    kinds: dict[StepKind, str] = {"predict": "make_predict_function", "evaluate": "make_test_function"}
    for kind, maker in kinds.items():
        setattr(model, kind, _whole(seen, getattr(model, kind), kind))
        setattr(model, maker, _maker(seen, getattr(model, maker), kind))
    original = model.__call__

    @functools.wraps(original)
    def devbench_call(called: Any, /, *args: Any, **kwargs: Any) -> Any:
        if not seen.eager:
            return original(called, *args, **kwargs)
        seen.sink.starting("model")
        seen.running.depth = 1
        try:
            returned = original(called, *args, **kwargs)
        finally:
            seen.running.depth = 0
        if not any(map(_is_symbolic, leaves(returned))):  # a functional model that is being built calls its parts
            seen.sink.step(seen.call("model", type(called).__name__), 1, returned, None)
        return returned

    model.__call__ = devbench_call


def _whole(seen: Observation, original: Callable[..., Any], kind: StepKind) -> Any:
    """Return a wrapper of `predict` or `evaluate` that notes whether the script itself calls it."""
    signature = inspect.signature(original)

    @functools.wraps(original)
    def devbench_call(model: Any, *args: Any, **kwargs: Any) -> Any:
        if seen.running.depth:  # such as the validation of `fit`
            return original(model, *args, **kwargs)
        seen.sink.starting(kind)
        seen.running.whole.append(kind)
        seen.running.batches_left = _batches(seen.tf, signature, model, args, kwargs)
        seen.running.depth = 1
        try:
            return original(model, *args, **kwargs)
        finally:
            seen.running.depth = 0
            seen.running.whole.remove(kind)

    return devbench_call


def _maker(seen: Observation, original: Callable[..., Any], kind: StepKind) -> Any:
    """Return a wrapper of the method that makes a model's function for a batch. The function then counts its calls."""
    attribute = "predict_function" if kind == "predict" else "test_function"

    @functools.wraps(original)
    def make(model: Any, force: bool = False) -> Any:
        returned = original(model, force=force)
        function = getattr(model, attribute) if returned is None else returned
        if hasattr(function, "devbench_original"):
            return function

        def batch(data: Any) -> Any:
            outputs = function(data)
            if seen.running.whole[:1] == [kind]:
                steps = max(1, int(min(steps_per_call(model), seen.running.batches_left)))
                if isinstance(data, list):  # the batches themselves, in `predict` of Keras 3
                    steps = len(data)
                seen.running.batches_left -= steps
                seen.sink.step(seen.call(kind, kind), steps, outputs, None)
            return outputs

        batch.devbench_original = function  # type: ignore[attr-defined]
        setattr(model, attribute, batch)
        return batch

    return make


def _batches(tf: Any, signature: inspect.Signature, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    """Return how many batches the data of a call of `predict` or `evaluate` has. Infinite if that is not known.

    Only the last of several steps in one call needs it.
    """
    if steps_per_call(model) == 1:
        return math.inf
    try:
        arguments = signature.bind(model, *args, **kwargs).arguments
    except TypeError:  # a wrong call, which Keras reports in its own words
        return math.inf
    return length_of_pass(tf, arguments)[0] or math.inf


def _is_symbolic(value: Any) -> bool:
    return type(value).__name__ == "KerasTensor" or hasattr(value, "_keras_history")
