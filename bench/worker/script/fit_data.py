"""The data of a script's call of `fit`, in a form from which devbench can take batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bench.worker import examples

BATCH = 32
"""The examples of a step if a call of `fit` gives no `batch_size`: Keras' default."""

KEPT_BATCHES = 32
"""Number of batches of a generator that are kept, to be used again when it ends."""


def obstacle(tf: Any, model: Any, arguments: Mapping[str, Any], given: Any = None) -> str | None:
    """Return why devbench cannot train in its own loops as a call of `fit` does, as a clause. None if it can.

    Args:
        tf: TensorFlow.
        model: the model.
        arguments: the arguments of the call, by name.
        given: the strategy that devbench runs the script under. None if there is none.
    """
    x, class_weight = arguments.get("x"), arguments.get("class_weight")
    strategy = getattr(model, "distribute_strategy", None)
    if strategy is not None and strategy is not given and not type(strategy).__name__.startswith("_Default"):
        return f"the model trains under a {type(strategy).__name__}"
    if isinstance(x, tf.data.Dataset):
        is_pair = isinstance(x.element_spec, tuple) and len(x.element_spec) == 2
        return "fit gets a class_weight for batches that are no pairs" if class_weight and not is_pair else None
    if examples.is_py_dataset(tf, x):
        return f"fit gets a class_weight for a {type(x).__name__}" if class_weight else None
    if x is None:
        return "fit gets no data"
    if isinstance(x, Iterator):
        return "fit gets a class_weight for a generator" if class_weight else None
    parts = [arguments[name] for name in ("x", "y", "sample_weight") if arguments.get(name) is not None]
    if any(isinstance(part, (tf.SparseTensor, tf.RaggedTensor)) for part in tf.nest.flatten(parts)):
        return "its data are sparse or ragged"
    try:
        fits = examples.arrays(tf, _arrays(tf, parts)) is not None
    except Exception:  # whatever the data are, they cannot be converted
        fits = False
    if fits and class_weight and (len(parts) != 2 or not isinstance(arguments["y"], (np.ndarray, list, tf.Tensor))):
        return "fit gets a class_weight with other weights, or with labels that are no array"
    return None if fits else f"its data are a {type(x).__name__}, which devbench cannot divide into batches"


def batch_of(tf: Any, arguments: Mapping[str, Any]) -> int | None:
    """Return the examples of a step, by the arguments of `fit`. None if the data are batches already."""
    return int(arguments.get("batch_size") or BATCH) if examples.has_batch_size(tf, arguments.get("x")) else None


def training_data(tf: Any, arguments: Mapping[str, Any]) -> tuple[Any, int | None]:
    """Return the data that `fit` trains on, in the form that a workload returns them in, and the examples of a batch.

    Args:
        tf: TensorFlow.
        arguments: the arguments of `fit`, by name. `obstacle` returns None for them.

    Returns:
        The examples of a batch are None if the data are batches already.
    """
    x, class_weight = arguments["x"], arguments.get("class_weight")
    if isinstance(x, tf.data.Dataset):
        return (x.map(_weighting(tf, class_weight)) if class_weight else x), None
    if examples.is_py_dataset(tf, x):
        return x, None
    if isinstance(x, Iterator):
        return _generated(tf, x), None
    return _training_arrays(tf, arguments), batch_of(tf, arguments)


def _training_arrays(tf: Any, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the arrays that `fit` trains on: x, y and weights of examples, without those for the validation."""
    parts = [arguments.get(name) for name in ("x", "y", "sample_weight")]
    while parts[-1] is None:
        parts.pop()
    arrays = _arrays(tf, parts)
    if class_weight := arguments.get("class_weight"):
        classes = arrays[1]
        if classes.ndim > 1:
            classes = classes.squeeze(-1) if classes.shape[-1] == 1 else classes.argmax(-1)
        weights = [class_weight.get(int(each), 1.0) for each in np.round(classes).tolist()]
        arrays = (*arrays, np.array(weights, "float32"))
    split = 0.0 if arguments.get("validation_data") is not None else arguments.get("validation_split") or 0.0
    count = examples.count(tf, arrays)
    kept = int(count * (1.0 - split)) if split else count
    return tuple(tf.nest.map_structure(lambda array: array[:kept], arrays))


def _arrays(tf: Any, parts: Any) -> tuple[Any, ...]:
    """Return nested arrays, tensors and data frames as NumPy arrays. Lists become tuples."""
    return tuple(tf.nest.map_structure(np.asarray, examples.as_tuple(parts)))


def _weighting(tf: Any, class_weight: Mapping[int, float]) -> Any:
    """Return a function that adds the weights of its examples to a batch."""
    table = tf.constant([class_weight.get(each, 1.0) for each in range(max(class_weight) + 1)], tf.float32)

    def weighted(x: Any, y: Any) -> Any:
        classes = y
        if len(y.shape) > 1:
            classes = tf.squeeze(y, axis=-1) if y.shape[-1] == 1 else tf.argmax(y, axis=-1)
        return x, y, tf.gather(table, tf.cast(tf.round(tf.cast(classes, tf.float32)), tf.int32))

    return weighted


def _generated(tf: Any, generator: Iterator[Any]) -> Any:
    """Return the batches of a generator as an endless Keras `PyDataset`, which reads them in order."""
    kind = getattr(tf.keras.utils, "PyDataset", None) or tf.keras.utils.Sequence
    kept: list[Any] = []

    class Generated(kind):  # type: ignore[misc, valid-type] # known only at run time
        """The batches of the generator. When it ends, the kept ones are repeated."""

        num_batches = None

        def __len__(self) -> int:  # in Keras 2, a data set cannot be endless
            return 1_000_000

        def __getitem__(self, index: int) -> Any:
            if index < len(kept):  # Keras looks at the first batches before it trains with them
                return kept[index]
            try:
                batch = next(generator)
            except StopIteration:
                return kept[index % len(kept)]
            if len(kept) < KEPT_BATCHES:
                kept.append(batch)
            return batch

    return Generated()
