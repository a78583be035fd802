"""Reading a number that depends on a whole step: the synchronisation that holds on every backend.

`.numpy()` on a value waits for that value only, so after a training step one element of every trainable
variable is read too: none of them is there before its update is done. On the CPU a call returns when all of it is
done, unless the program asked for asynchronous execution, so there the value is enough: reading the variables of
a 1 ms step was seen to cost 0.7% of a block. TensorFlow's own ways to synchronise are absent in 2.10 or do nothing
on DirectML.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bench.errors import WorkloadError


class Reader:
    """Turns whatever a step gave into one float.

    Args:
        tf: the TensorFlow module.
        device: the device under test, where the elements are picked, so that one number travels.

    Attributes:
        model: whose variables a step changes; none where it changes none.
        trace_seconds: what tracing for this class's own needs took.
    """

    def __init__(self, tf: Any, device: str) -> None:
        self._tf = tf
        self._device = device
        self._on_cpu = "CPU" in device
        self._sums: dict[int, Callable[[], Any]] = {}
        self.model: Any = None
        self.trace_seconds = 0.0

    def sync(self, value: Any) -> float:
        """Waits for the step that gave `value` and for every variable of the model it trains."""
        number = self._last(value)
        if self.model is None or (self._on_cpu and self._tf.config.experimental.get_synchronous_execution()):
            return number
        return number + self._variables(self.model)

    def answer(self, value: Any) -> float:
        """The number that is to agree between devices: a loss, or the root mean square of an output.

        Not an output's mean: that of a softmax is the same whatever was computed.
        """
        import numpy as np

        value = value.get("loss", value) if isinstance(value, dict) else value
        if hasattr(value, "trainable_variables"):
            value = np.concatenate([v.numpy().ravel() for v in value.trainable_variables])
        array = np.asarray(value, dtype="float64")
        return float(np.sqrt(np.mean(array**2))) if array.ndim else float(array)

    def _last(self, value: Any) -> float:
        if isinstance(value, dict):
            return sum(self._last(part) for part in value.values())
        if isinstance(value, (tuple, list)):
            return sum(self._last(part) for part in value)
        if hasattr(value, "trainable_variables"):
            return sum(self._last(v) for v in value.trainable_variables)
        if hasattr(value, "value") and callable(value.value):
            value = value.value()
        if not hasattr(value, "shape") or not len(value.shape):
            return self._number(value)
        return float(self._tf.reshape(value, [-1])[-1])

    def _number(self, value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            fix = "Let it yield or return what depends on the whole step: a tensor, an array, a number or a model."
            raise WorkloadError(f"a step gave {value!r:.80}, which is no number", fix) from None

    def prepare(self, model: Any) -> None:
        """Makes what `sync` needs for this model, before a clock runs; its tracing is not the program's."""
        variables = [getattr(v, "value", v) for v in model.trainable_variables] if model.built else []
        if id(model) in self._sums or not variables:
            return
        tf = self._tf
        begun = time.perf_counter()

        def one_of_each() -> Any:
            parts = [tf.reshape(v() if callable(v) else v, [-1])[0] for v in variables]
            return tf.add_n([tf.cast(part, tf.float32) for part in parts])

        pick = tf.function(one_of_each, jit_compile=False)
        with tf.device(self._device):
            pick.get_concrete_function()
        self._sums[id(model)] = pick
        self.trace_seconds += time.perf_counter() - begun

    def _variables(self, model: Any) -> float:
        """One element of each variable, summed in a graph: one call, one number."""
        self.prepare(model)
        pick = self._sums.get(id(model))
        if pick is None:
            return 0.0
        with self._tf.device(self._device):
            return float(pick())
