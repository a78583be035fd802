"""Takes the step of a custom loop out of a script: its `tf.function`, with the arguments of a few calls."""

from __future__ import annotations

import functools
import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np

from bench.errors import NotApplicable
from bench.model.recognition import StepSource
from bench.worker.cluster.strategy import distributed
from bench.worker.patches import patched
from bench.worker.script.calls import Observation
from bench.worker.script.functions import name_of
from bench.worker.script.running import CONCRETE, Arguments

CALLS = 8
"""Number of calls whose arguments are used. They run and update weights, so every process runs the same number."""


def obstacle(tf: Any, arguments: Arguments | None) -> str | None:
    """Return why a step cannot be called outside the script's loop, as a clause. None if it can.

    Args:
        tf: TensorFlow.
        arguments: the arguments of its `tf.function`. None if the step is no `tf.function`.
    """
    if arguments is None:
        return "the step runs eagerly, not in a tf.function"
    if arguments is CONCRETE:
        return "its function is a concrete function"
    leaves = tf.nest.flatten(arguments)
    for leaf in leaves:
        if isinstance(leaf, (tf.data.Dataset, tf.data.Iterator)):
            return "its tf.function reads the batches itself"
        if isinstance(leaf, (tf.SparseTensor, tf.RaggedTensor, tf.distribute.DistributedValues)):
            return f"its tf.function gets a {type(leaf).__name__}"
    return None if any(map(is_batch, leaves)) else "its tf.function gets no tensors"


def is_batch(leaf: Any) -> bool:
    """Whether an argument differs from step to step: it is a tensor or an array, and not a variable."""
    return isinstance(leaf, np.ndarray) or (hasattr(leaf, "shape") and type(leaf).__name__ == "EagerTensor")


class FunctionCalls:
    """Captures calls of a script's `tf.function`.

    Args:
        tf: TensorFlow.
        seen: knows which line makes a call.
        target: the loop whose calls are captured.
        stop: the exception that unwinds the script once there are enough calls.
        strategy: the strategy of `tf.distribute` that the calls run under. None if there is none.

    Attributes:
        capturing: the context in which the calls are captured.
    """

    def __init__(
        self, tf: Any, seen: Observation, target: StepSource, stop: type[BaseException], strategy: Any = None
    ) -> None:
        self._tf = tf
        self._strategy = strategy
        self._replicas: dict[Any, Any] = {}
        self._calls: list[Arguments] = []
        self._function: Any = None
        kind = type(tf.function(lambda: None))
        original = kind.__call__

        @functools.wraps(original)
        def call(function: Any, /, *args: Any, **kwargs: Any) -> Any:
            if not seen.eager:
                return original(function, *args, **kwargs)
            if len(self._calls) == CALLS:
                raise stop
            seen.running.depth = 1
            try:
                returned = original(self._under_strategy(function), *args, **kwargs)
            finally:
                seen.running.depth = 0
            if seen.call(target.kind, name_of(function)).token == target.token:
                self._function = function
                self._calls.append((args, kwargs))
                if len(self._calls) == CALLS:
                    raise stop
            return returned

        self.capturing = patched(kind, __call__=call)

    @property
    def found(self) -> bool:
        """Whether a call was captured."""
        return bool(self._calls)

    def parts(self, place: str) -> tuple[dict[str, Any], Any]:
        """Return what a workload would define, by name, and its parameters.

        Args:
            place: the loop in words, for messages.

        Raises:
            NotApplicable: the step cannot be called outside the script's loop, or cannot run under the strategy.
        """
        tf, first = self._tf, self._calls[0]
        if reason := obstacle(tf, first):
            raise NotApplicable(f"{place} cannot be replayed, because {reason}")
        leaves = tf.nest.flatten(first)
        batches = [tuple(filter(is_batch, tf.nest.flatten(call))) for call in self._calls]
        shapes = [[tuple(part.shape) for part in batch] for batch in batches]
        cycle = itertools.cycle([batch for batch, shape in zip(batches, shapes, strict=True) if shape == shapes[0]])
        args, kwargs = first
        variables = self._under_strategy(self._function).get_concrete_function(*args, **kwargs).variables
        if self._strategy is not None and self._function._jit_compile:
            raise NotApplicable(f"{place} cannot run under a strategy, because its tf.function is compiled with XLA")
        function = self._function if self._strategy is None else self._function.python_function

        def step(*batch: Any) -> Any:
            parts = iter(batch)
            filled = [next(parts) if is_batch(leaf) else leaf for leaf in leaves]
            args, kwargs = tf.nest.pack_sequence_as(first, filled)
            return _number(tf, function(*args, **kwargs), variables)

        offered = {"inputs": lambda: next(cycle), "step": lambda: step, "SAME_ANSWER": False}
        return offered, SimpleNamespace(epochs=1)

    def _under_strategy(self, function: Any) -> Any:
        """Return a function that runs as a replica of the strategy. No `tf.function` may be nested in it."""
        if self._strategy is None:
            return function
        if function not in self._replicas:
            self._replicas[function] = self._tf.function(distributed(self._strategy, function.python_function))
        return self._replicas[function]


def _number(tf: Any, value: Any, variables: Any) -> Any:
    """Return a number that depends on the step: from what it returned, or from a variable that it may have changed.

    Raises:
        NotApplicable: there is no such number.
    """
    tensors = [part for part in tf.nest.flatten(value) if tf.is_tensor(part) and part.dtype.is_floating]
    tensors = sorted(tensors, key=lambda part: part.shape.rank != 0) or [v for v in variables if v.dtype.is_floating]
    if not tensors:
        raise NotApplicable("the step returns and changes no number", "Let its tf.function return the loss.")
    return tf.cast(tf.reshape(tensors[0], [-1])[0], tf.float32)
