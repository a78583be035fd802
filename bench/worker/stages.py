"""The stages of a `tf.data` pipeline, and the length of its partial batch. Worker's side only."""

from __future__ import annotations

import math
from typing import Any


def stages(dataset: Any) -> list[Any]:
    """Return the datasets that a pipeline consists of, from its source on."""
    chain: list[Any] = []
    while dataset is not None:
        chain.append(dataset)
        dataset = getattr(dataset, "_input_dataset", None) or getattr(dataset, "_dataset", None)
    return [stage for stage in reversed(chain) if not type(stage).__name__.endswith(("OptionsDataset", "Adapter"))]


def dataset_remainder(dataset: Any) -> int:
    """Return the number of examples in the partial batch of a `tf.data.Dataset`. 0 if there is none or it is unknown.

    It follows from the number of elements that enter the last `batch` stage, if no later stage changes the number of
    batches.
    """
    chain = stages(dataset)
    last = next((index for index, stage in reversed(list(enumerate(chain))) if hasattr(stage, "_batch_size")), 0)
    if not last:
        return 0
    examples, count, size = int(chain[last - 1].cardinality()), int(dataset.cardinality()), int(chain[last]._batch_size)
    return examples % size if examples > 0 and count == math.ceil(examples / size) else 0
