"""The part of the data that one worker computes on. All workers together use each batch once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.errors import WorkloadError
from bench.model.spec import Scaling

MULTIPLE = "Choose a batch that is a multiple of"


@dataclass(frozen=True)
class DataShare:
    """One worker's part of the data.

    Args:
        index: the worker, from 0.
        count: number of workers.
        scaling: strong: each worker gets a part of every batch. weak: each worker gets every `count`-th batch.
    """

    index: int
    count: int
    scaling: Scaling

    def rows(self, batch: int) -> int:
        """Return how many examples of a batch this worker computes on.

        Raises:
            WorkloadError: the batch does not divide among the workers.
        """
        if self.scaling == "weak":
            return batch
        rows, rest = divmod(batch, self.count)
        if rest or not rows:
            raise WorkloadError(
                f"a batch of {batch} examples does not divide among {self.count} workers",
                f"{MULTIPLE} {self.count}.",
            )
        return rows

    def positions(self, examples: int, batch: int) -> Any:
        """Return the positions of this worker's examples among all examples, in order, as a NumPy array.

        Examples that do not fill a batch for every worker are left out.

        Args:
            examples: number of all examples.
            batch: number of examples of a batch.

        Raises:
            WorkloadError: the batch does not divide among the workers, or there are too few examples.
        """
        import numpy as np

        rows = self.rows(batch)
        steps = examples // (rows * self.count)
        if not steps:
            raise WorkloadError(
                f"{examples} examples do not fill a batch of {rows} for each of {self.count} workers",
                "Use fewer workers, a smaller batch or more data.",
            )
        positions = np.arange(steps * rows * self.count).reshape(steps, self.count, rows)
        return positions[:, self.index].reshape(-1)

    def of_batches(self, tf: Any, batches: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Yield this worker's part of endless batches of NumPy arrays. Partial batches are left out."""
        first = next(batches)
        size = len(tf.nest.flatten(first)[0])
        rows = self.rows(size)
        full = (batch for batch in itertools.chain([first], batches) if len(tf.nest.flatten(batch)[0]) == size)
        if self.scaling == "weak":
            yield from itertools.islice(full, self.index, None, self.count)
            return
        start = self.index * rows
        for batch in full:
            yield tf.nest.map_structure(lambda part: part[start : start + rows], batch)

    def of_dataset(self, tf: Any, dataset: Any) -> Any:
        """Return this worker's part of an endless `tf.data.Dataset` of batches. Partial batches are left out.

        Every worker reads the whole dataset, as under `AutoShardPolicy.DATA`. The first batch must be a full one.

        Returns:
            An iterable of batches. Under strong scaling, the start of an iteration raises `WorkloadError` if the batch
            does not divide among the workers.
        """
        message = f"the batch does not divide among {self.count} workers"

        def size_of(batch: Any) -> Any:
            return tf.shape(tf.nest.flatten(batch)[0], out_type=tf.int64)[0]

        def mark(first: Any, *batch: Any) -> Any:
            first = tf.where(first < 0, size_of(batch), first)
            return first, (tf.equal(size_of(batch), first), batch)

        def part(_: Any, batch: Any) -> Any:
            if self.scaling == "strong":
                rest = tf.debugging.assert_equal(size_of(batch) % self.count, tf.constant(0, tf.int64), message)
                with tf.control_dependencies([rest]):
                    rows = size_of(batch) // self.count
                batch = tf.nest.map_structure(lambda tensor: tensor[self.index * rows : (self.index + 1) * rows], batch)
            return batch if len(batch) > 1 else batch[0]

        full = dataset.scan(tf.constant(-1, tf.int64), mark).filter(lambda is_full, _: is_full)
        if self.scaling == "weak":
            full = full.shard(self.count, self.index)
        divided = full.map(part, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
        if self.scaling == "weak":
            return divided
        return _Divided(divided, tf.errors.InvalidArgumentError, message, f"{MULTIPLE} {self.count}.")


class _Divided:
    """A worker's part of a dataset.

    TensorFlow reports an assertion in a dataset with a long text about the function. This class gives the reason.

    Args:
        dataset: yields the batches. An error that contains the message comes before the first batch, if at all.
        error: class of that error.
        message: why the dataset cannot be divided.
        hint: what to do about it.
    """

    def __init__(self, dataset: Any, error: type[Exception], message: str, hint: str) -> None:
        self._dataset = dataset
        self._error = error
        self._message = message
        self._hint = hint

    def __iter__(self) -> Iterator[Any]:
        """Return an iterator that has read the first batch.

        Raises:
            WorkloadError: the dataset cannot be divided.
        """
        batches = iter(self._dataset)
        try:
            first = next(batches)
        except self._error as error:
            if self._message not in str(error):
                raise
            raise WorkloadError(self._message, self._hint) from None
        return itertools.chain([first], batches)
