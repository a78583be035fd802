"""The forms in which a workload's `data` returns examples, and their batches. Worker's side only.

Examples are arrays, a `tf.data.Dataset` of batches, or a Keras `PyDataset` (before Keras 3: a `Sequence`). The arrays
may be nested in tuples, lists and dicts, as in `({"user": u, "item": i}, y)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from bench.errors import WorkloadError

RETURN = (
    "Return a tuple of arrays whose first axis is the example, a tf.data.Dataset of batches, or a "
    "keras.utils.PyDataset."
)
NO_BATCH = "Check that it finds its examples. With drop_remainder=True, examples that do not fill a batch are dropped."
"""What to do about data without a batch."""

LONGEST = 200
"""Maximum characters of a description."""


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return a batch as the arguments of a step. Lists become tuples, because `tf.data` turns lists into tensors."""
    value = without_lists(value)
    return value if isinstance(value, tuple) else (value,)


def without_lists(value: Any) -> Any:
    """Return a nested structure with tuples in place of its lists."""
    if isinstance(value, Mapping):
        return {key: without_lists(part) for key, part in value.items()}
    if isinstance(value, list) or type(value) is tuple:
        return tuple(map(without_lists, value))
    return value


def is_py_dataset(tf: Any, data: Any) -> bool:
    """Whether data is a Keras `PyDataset`, which was called `Sequence` before Keras 3."""
    return isinstance(data, getattr(tf.keras.utils, "PyDataset", None) or tf.keras.utils.Sequence)


def has_batch_size(tf: Any, data: Any) -> bool:
    """Whether Keras' `fit` divides the data into batches itself, by its `batch_size`."""
    return not (data is None or isinstance(data, (tf.data.Dataset, Iterator)) or is_py_dataset(tf, data))


def py_dataset_length(data: Any) -> int | None:
    """Return the batches of a `PyDataset`. None if it is endless."""
    length = data.num_batches if hasattr(type(data), "num_batches") else len(data)
    return None if length is None else int(length)


def py_dataset_workers(data: Any, arguments: Mapping[str, Any] = MappingProxyType({})) -> int:
    """Return how many threads or processes prepare batches of a `PyDataset`.

    Args:
        data: the `PyDataset`.
        arguments: those of `fit`, which has the number before Keras 3.
    """
    return int(getattr(data, "workers", None) or arguments.get("workers") or 1)


def py_dataset_remainder(tf: Any, data: Any) -> int:
    """Return the examples in the partial batch at the end of a `PyDataset`. 0 if there is none or it is not known.

    It reads the first batch and the last one. Keras reads some batches in advance too, for their dtypes and shapes.
    """
    length = py_dataset_length(data) or 0
    if length < 2:
        return 0
    leaves = [tf.nest.flatten(as_tuple(data[index]))[0] for index in (0, length - 1)]
    first, last = (count(tf, leaf) if _is_array(leaf) else 0 for leaf in leaves)
    return last if last < first else 0


def py_dataset_batches(data: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the batches of a `PyDataset` without end, in order."""
    length = py_dataset_length(data)
    index = 0
    while True:
        yield as_tuple(data[index])
        index += 1
        if index == length:
            index = 0
            data.on_epoch_end()


def arrays(tf: Any, data: Any) -> tuple[Any, ...] | None:
    """Return data as a tuple of arrays or nested arrays, all of the same length. None if it has another form."""
    parts = as_tuple(data)
    leaves = tf.nest.flatten(parts)
    if not leaves or not all(map(_is_array, leaves)):
        return None
    return parts if len({int(leaf.shape[0]) for leaf in leaves}) == 1 else None


def count(tf: Any, parts: Any) -> int:
    """Return the number of examples in nested arrays."""
    return int(tf.nest.flatten(parts)[0].shape[0])


def check(tf: Any, data: Any, workload: str, has_batch: bool) -> None:
    """Check that a loop can take batches from what `data` returned.

    Args:
        tf: TensorFlow.
        data: what `data` returned.
        workload: name of the workload.
        has_batch: whether its `Params` have a batch.

    Raises:
        WorkloadError: the data is not in a form that the protocol allows.
    """
    if isinstance(data, tf.data.Dataset) or is_py_dataset(tf, data):
        length = py_dataset_length(data) if is_py_dataset(tf, data) else int(data.cardinality())
        if length == 0:
            raise WorkloadError(f"`data` of {workload} returned no batch", NO_BATCH)
        return
    if data is None or isinstance(data, Iterator):
        kind = "nothing" if data is None else f"a {type(data).__name__}, which can be read only once"
        raise WorkloadError(f"`data` of {workload} returned {kind}", RETURN)
    if arrays(tf, data) is None:
        leaves = tf.nest.flatten(as_tuple(data))
        problem = "different numbers of examples" if leaves and all(map(_is_array, leaves)) else "more than arrays"
        raise WorkloadError(f"`data` of {workload} returned {problem}: {description(tf, data)}", RETURN)
    if not count(tf, as_tuple(data)):
        raise WorkloadError(f"`data` of {workload} returned no example: {description(tf, data)}", NO_BATCH)
    if not has_batch:
        hint = "Add `batch: int = 32` to Params, the examples per step, or return a tf.data.Dataset of batches."
        raise WorkloadError(f"`data` of {workload} returned arrays, but Params has no `batch`", hint)


def description(tf: Any, data: Any) -> str:
    """Return the structure of data, with the dtype and shape of each array in place of its values."""
    text = str(tf.nest.map_structure(_Leaf, without_lists(data)))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


class _Leaf:
    """Stands for an array in a description."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        if not hasattr(self.value, "shape"):
            return type(self.value).__name__
        dtype = getattr(self.value, "dtype", type(self.value).__name__)
        return f"{getattr(dtype, 'name', dtype)} {tuple(self.value.shape)}"


def _is_array(leaf: Any) -> bool:
    return hasattr(leaf, "shape") and hasattr(leaf, "__getitem__") and len(leaf.shape) > 0
