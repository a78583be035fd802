"""The batches that loops take from a workload's data or inputs. Worker's side only.

A loop that reads prepared batches cycles through `POOL` different ones. Because inputs always vary, TensorFlow cannot
hoist work out of the loop or merge steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.errors import NotApplicable, WorkloadError
from bench.machine import installed
from bench.worker import examples
from bench.worker.examples import as_tuple
from bench.worker.rig import Rig

ENDLESS = 1_000_000
"""Steps of an epoch, or epochs, that no run reaches."""

POOL = 32
"""Batches that `host-batches`, `resident` and `fused` cycle through."""

FIT_DATA = ("x", "y", "sample_weight")
"""The arguments of `fit` that hold examples."""


def cast_float64(tf: Any, parts: tuple[Any, ...], dtype: str) -> tuple[Any, ...]:
    """Cast float64 arrays to the dtype that the loop computes in, as Keras does in `fit`. Keep the others."""
    target = "float64" if dtype == "float64" else "float32"

    def cast(array: Any) -> Any:
        return array.astype(target) if getattr(array, "dtype", None) == "float64" else array

    cast_parts: tuple[Any, ...] = tf.nest.map_structure(cast, parts)
    return cast_parts


def batches(rig: Rig) -> Iterator[tuple[Any, ...]]:
    """Yield batches of NumPy arrays without end, in the order of the data. Each holds the arguments of a step.

    Raises:
        NotApplicable: the workload has no batches.
    """
    if rig.has("inputs"):
        while True:
            yield rig.inputs()
    elif rig.is_dataset:
        for batch in rig.data.repeat().as_numpy_iterator():
            yield as_tuple(batch)
    elif rig.is_py_dataset:
        for batch in examples.py_dataset_batches(rig.data):
            yield cast_float64(rig.tf, batch, rig.spec.dtype)
    elif (arrays := rig.arrays) is not None:
        full = max(1, examples.count(rig.tf, arrays) // rig.p.batch)
        for index in itertools.count():
            start = index % full * rig.p.batch
            yield cast_float64(rig.tf, sliced(rig.tf, arrays, start, start + rig.p.batch), rig.spec.dtype)
    else:
        raise NotApplicable(
            f"{rig.spec.workload} has no batches",
            "Define `inputs`, or `data` that returns a tf.data.Dataset, or a tuple of arrays with `batch` in Params.",
        )


def sliced(tf: Any, parts: Any, start: int, stop: int | None) -> Any:
    """Return the examples `start` to `stop` of nested arrays, or all from `start` on if `stop` is None."""
    return tf.nest.map_structure(lambda array: array[start:stop], parts)


def pool(rig: Rig) -> list[tuple[Any, ...]]:
    """Return the batches that loops without an input pipeline cycle through, all of one size.

    If the data is divided among workers, these are the worker's own parts.
    """
    size = rig.epoch.batches if rig.epoch else POOL
    own = rig.share.of_batches(rig.tf, batches(rig)) if rig.share else batches(rig)
    first = first_of(own, rig.spec.workload)
    others = itertools.islice(own, max(0, min(POOL, size) - 1))
    return [first, *(batch for batch in others if not is_smaller(rig.tf, batch, first))]


def first_of(iterator: Iterator[Any], workload: str) -> Any:
    """Return the first batch of a workload's data.

    Raises:
        WorkloadError: there is none.
    """
    for batch in iterator:
        return batch
    raise WorkloadError(f"the data of {workload} holds no batch", examples.NO_BATCH)


def is_smaller(tf: Any, batch: tuple[Any, ...], first: tuple[Any, ...]) -> bool:
    """Whether a batch is the partial batch, because it has another number of examples than the first one.

    Examples of another length, as of padded sentences, do not make a batch smaller.
    """
    return _size(tf, batch) != _size(tf, first)


def _size(tf: Any, batch: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the number of examples of a batch, read from its first array only, because each step asks for it."""
    parts = tf.nest.flatten(batch)
    return tuple(getattr(parts[0], "shape", ()))[:1] if parts else ()


def shapes(tf: Any, batch: tuple[Any, ...]) -> list[tuple[int, ...]]:
    """Return the shape of each array of a batch."""
    return [tuple(getattr(part, "shape", ())) for part in tf.nest.flatten(batch)]


def pipeline(rig: Rig) -> Any:
    """Return endless batches of the workload's data: a `tf.data.Dataset` or another iterable. None if it has no data.

    If the data is divided among workers, these are the worker's own parts. Of arrays, only its own examples are read.

    Raises:
        NotApplicable: Keras prepares the batches in several threads or processes, which is faster.
    """
    tf, share = rig.tf, rig.share
    if rig.is_dataset:
        repeated = rig.what_ifs.dataset(rig.data).repeat()
        return share.of_dataset(tf, repeated) if share else repeated
    if rig.is_py_dataset:
        if (workers := examples.py_dataset_workers(rig.data)) > 1:
            raise NotApplicable(
                f"the PyDataset of {rig.spec.workload} has {workers} workers, and this loop reads it in one thread",
                f"Use --loop {'fit, ' if rig.compiled else ''}host-batches or resident.",
            )
        signature = tf.nest.map_structure(any_shape_of(tf), first_of(batches(rig), rig.spec.workload))
        generated = tf.data.Dataset.from_generator(lambda: batches(rig), output_signature=signature)
        return share.of_dataset(tf, generated) if share else generated.prefetch(tf.data.AUTOTUNE)
    if (arrays := rig.arrays) is not None:
        size = max(1, min(int(rig.p.batch), examples.count(tf, arrays)))  # a batch of all rows, if it asks for more
        if share:
            positions = share.positions(examples.count(tf, arrays), size)
            arrays, size = tf.nest.map_structure(lambda array: np.asarray(array)[positions], arrays), share.rows(size)
        dataset = tf.data.Dataset.from_tensor_slices(cast_float64(tf, arrays, rig.spec.dtype))
        return dataset.batch(size, drop_remainder=True).repeat().prefetch(tf.data.AUTOTUNE)
    return None


def any_shape_of(tf: Any) -> Callable[[Any], Any]:
    """Return a function from an array to a `tf.TensorSpec` of its dtype and rank, of any shape."""

    def spec(array: Any) -> Any:
        tensor = tf.convert_to_tensor(array)
        return tf.TensorSpec([None] * tensor.shape.rank, tensor.dtype)

    return spec


def fit_arguments(rig: Rig, shuffle: bool) -> dict[str, Any]:
    """Return the arguments with which Keras' `fit` trains on the workload's data, by name, without the epochs.

    Raises:
        NotApplicable: `fit` cannot take the data.
    """
    if rig.is_dataset:
        length = int(rig.tf.data.experimental.cardinality(rig.data))
        endless = length == rig.tf.data.experimental.INFINITE_CARDINALITY
        if endless and installed.keras(rig.tf).startswith("2."):  # Keras 2 refuses data without an end otherwise
            return {"x": rig.data, "steps_per_epoch": ENDLESS}
        return {"x": rig.data}
    if rig.is_py_dataset:
        return {"x": rig.data, "shuffle": shuffle}
    arrays = rig.arrays
    if arrays is None or len(arrays) > len(FIT_DATA):
        raise NotApplicable(
            f"fit cannot train {rig.spec.workload} on its data",
            "Let `data` return (x, y), (x, y, weights), a tf.data.Dataset or a keras.utils.PyDataset.",
        )
    return {**dict(zip(FIT_DATA, arrays, strict=False)), "batch_size": int(rig.p.batch), "shuffle": shuffle}
