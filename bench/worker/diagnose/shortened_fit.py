"""The program's own call of `fit`, reduced to its first few batches. Worker's side only."""

from __future__ import annotations

from typing import Any

from bench.worker import examples
from bench.worker.batches import FIT_DATA, sliced
from bench.worker.fit_epochs import length_of_pass, training_examples
from bench.worker.rig import Rig


def shortened(rig: Rig, arguments: dict[str, Any], batches: int, remainder: int = 0) -> dict[str, Any] | None:
    """Return the arguments of the program's own call of `fit`, with shorter epochs. None if that is not possible.

    If the call has `steps_per_epoch`, and this is not the length of the data, one iterator serves all epochs. Then the
    data stays, and an epoch has fewer steps. Otherwise, each epoch reads the same first batches.

    Args:
        rig: the rig.
        arguments: the arguments of the call, by name.
        batches: number of full batches to keep. If there are fewer, all are kept.
        remainder: number of examples in a partial batch that follows them. 0 for none.
    """
    new, data, tf = dict(arguments), arguments.get("x"), rig.tf
    steps, (count, _) = int(arguments.get("steps_per_epoch") or 0), length_of_pass(tf, arguments)
    if steps and steps != count:
        return new | {"steps_per_epoch": min(batches, steps)}
    if isinstance(data, tf.data.Dataset):
        full = count - bool(remainder)
        full_batches = data.take(min(batches, full) if full > 0 else batches)
        is_tuple = isinstance(data.element_spec, tuple)
        partial = data.take(1).map(lambda *batch: sliced(tf, batch if is_tuple else batch[0], 0, remainder))
        new["x"] = full_batches.concatenate(partial) if remainder else full_batches
    elif examples.is_py_dataset(tf, data):
        new["x"] = _first_batches(tf, data, batches, bool(remainder))
    elif data is not None and examples.arrays(tf, data) is not None:
        size = int(new.get("batch_size") or 32)
        trained = training_examples(tf.nest.flatten(data), arguments)
        parts = {name: new[name] for name in FIT_DATA if new.get(name) is not None}
        if new.pop("validation_split", None) and new.get("validation_data") is None:
            new["validation_data"] = tuple(sliced(tf, part, trained, None) for part in parts.values())
        stop = min(trained, batches * size + remainder)
        new |= {name: sliced(tf, part, 0, stop) for name, part in parts.items()}
    else:
        return None
    new.pop("steps_per_epoch", None)
    return new


def _first_batches(tf: Any, data: Any, batches: int, partial: bool) -> Any:
    """Return a Keras `PyDataset` of the first full batches of another one and, if `partial`, of its partial batch."""
    length = examples.py_dataset_length(data) or 0
    full = min(batches, length - partial) if length else batches

    class FirstBatches(getattr(tf.keras.utils, "PyDataset", None) or tf.keras.utils.Sequence):  # type: ignore[misc]
        def __len__(self) -> int:
            return full + partial

        def __getitem__(self, index: int) -> Any:
            return data[index if index < full else length - 1]

    return FirstBatches()
