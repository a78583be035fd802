"""Synchronization by reading one number that depends on a whole step. It works on every backend.

`.numpy()` on a value waits for that value only. After a training step, one element of every trainable variable is read
too, because none of them exists before its update is done. On the CPU, the value is enough, because a call returns when
all of its work is done, unless the program asked for asynchronous execution. Reading the variables of a 1 ms step as
well would cost 0.7% of a block. TensorFlow's own ways to synchronize are missing in 2.10 or do nothing on DirectML.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from bench.errors import WorkloadError


class Synchronizer:
    """Turns the value of a step into one float.

    Args:
        tf: the TensorFlow module.
        device: the device under test. The elements are picked there, so that only one number travels.

    Attributes:
        model: the model whose variables a step changes. None if a step changes none.
        trace_seconds: seconds of traces that this class needs for itself.
    """

    def __init__(self, tf: Any, device: str) -> None:
        self._tf = tf
        self._device = device
        self._on_cpu = "CPU" in device
        self._sums: dict[int, Callable[[], Any]] = {}
        self.model: Any = None
        self.trace_seconds = 0.0

    def sync(self, value: Any) -> float:
        """Wait for the step that returned `value`, and for the variables of the model. Return a number from them.

        Raises:
            WorkloadError: the value holds no number.
        """
        is_done = self._on_cpu and self._tf.config.experimental.get_synchronous_execution()
        if hasattr(value, "trainable_variables"):  # the step returned no number
            if is_done:
                return self._last_element(list(value.trainable_variables)[-1:])
            if self.model is not None:
                return self._variables(self.model)
        number = self._last_element(value)
        return number if self.model is None or is_done else number + self._variables(self.model)

    def loss(self, value: Any, only_finite: bool = False) -> float:
        """Return the number that must agree on every device: a loss, or the root mean square of an output.

        The mean of an output is not enough: the mean of a softmax is the same for any computation.

        Args:
            value: what a step returned.
            only_finite: leave out elements that are not finite. The number is 0 if none is left.
        """
        import numpy as np

        value = total_loss(self._tf, value)  # `fit` reports what the model's `train_step` returned
        if hasattr(value, "trainable_variables"):
            value = np.concatenate([v.numpy().ravel() for v in value.trainable_variables])
        array = np.asarray(_numbers(value))
        array = np.abs(array).astype("float64") if array.dtype.kind == "c" else array.astype("float64")
        if not array.size:
            return 0.0
        if only_finite and not np.isfinite(array).all():
            array = array[np.isfinite(array)] if array.ndim and np.isfinite(array).any() else np.zeros(())
        return float(np.sqrt(np.mean(array**2))) if array.ndim else float(array)

    def _last_element(self, value: Any) -> float:
        import numpy as np

        value = _numbers(value)
        if isinstance(value, np.ndarray):  # it is on the host already
            return self._number(value.flat[-1]) if value.size else 0.0
        if isinstance(value, Mapping):
            numbers = {key: self._last_element(part) for key, part in value.items()}
            return numbers["loss"] if "loss" in numbers else sum(numbers.values())  # a metric may be NaN on purpose
        if isinstance(value, (tuple, list)):
            return sum(self._last_element(part) for part in value)
        if hasattr(value, "trainable_variables"):
            return sum(self._last_element(v) for v in value.trainable_variables)
        if hasattr(value, "value") and callable(value.value):
            value = value.value()
        if not hasattr(value, "shape") or not len(value.shape):
            return self._number(value)
        last = self._tf.reshape(value, [-1])[-1:].numpy()
        return self._number(last[0]) if len(last) else 0.0

    def _number(self, value: Any) -> float:
        import numpy as np

        try:
            number = value.numpy() if hasattr(value, "numpy") else value
            return float(abs(number) if np.iscomplexobj(number) else number)
        except (TypeError, ValueError, NotImplementedError):  # the last one for a symbolic tensor
            fix = "Yield or return a value that depends on the whole step: a tensor, an array, a number or a model."
            raise WorkloadError(f"a step returned {value!r:.80}, which is not a number", fix) from None

    def observe(self, model: Any) -> None:
        """Wait for the variables of this model from now on. Those of a model before it are no longer kept alive."""
        if model is not self.model:
            self._sums.clear()
        self.model = model
        self.prepare(model)

    def prepare(self, model: Any) -> None:
        """Build what `sync` needs for a model, before a clock runs. The trace does not count as the program's."""
        variables = [getattr(v, "value", v) for v in model.trainable_variables] if model.built else []
        if id(model) in self._sums or not variables:
            return
        tf = self._tf
        start = time.perf_counter()

        def sum_of_elements() -> Any:
            parts = [tf.reshape(v() if callable(v) else v, [-1])[0] for v in variables]
            return tf.add_n([tf.cast(part, tf.float32) for part in parts])

        total = tf.function(sum_of_elements, jit_compile=False)
        with tf.device(self._device):
            total.get_concrete_function()
        self._sums[id(model)] = total
        self.trace_seconds += time.perf_counter() - start

    def _variables(self, model: Any) -> float:
        """Return the sum of one element of each variable. This takes one call of a graph, and reads one number."""
        self.prepare(model)
        total = self._sums.get(id(model))
        if total is None:
            return 0.0
        with self._tf.device(self._device):
            return float(total())


def _numbers(value: Any) -> Any:
    """Return the tensor that holds the numbers of a ragged or sparse tensor, or of slices. Others are unchanged."""
    if hasattr(value, "flat_values"):
        return value.flat_values
    return value.values if hasattr(value, "values") and not callable(value.values) else value


def total_loss(tf: Any, returned: Any) -> Any:
    """Return the loss from what a model's `train_step` returned, in a graph or eagerly.

    This is `loss`, or the sum of the means of all values if there is no `loss`: 0 if there is no value.
    """
    if not isinstance(returned, Mapping):
        return returned
    if "loss" in returned:
        return returned["loss"]
    means = [tf.reduce_mean(part) for part in tf.nest.flatten(returned)]
    return tf.add_n([tf.cast(mean, means[0].dtype) for mean in means]) if means else tf.constant(0.0)
