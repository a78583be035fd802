"""The part of the data that one worker computes on. All workers together use each batch once."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.errors import WorkloadError
from bench.model.spec import Scaling

MULTIPLE = "Choose a batch that is a multiple of"

NO_ARRAYS = "the step gets no arrays that can be divided among workers"

MOST_OTHERS = 1_000
"""Maximum number of batches that are left out in a row under weak scaling, because their shapes differ."""


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
        """Yield this worker's part of endless batches of NumPy arrays. Partial batches are left out.

        Under weak scaling, batches of another shape than the first one are left out too. Each shape is traced, and
        workers that trace different shapes wait for each other forever.

        Raises:
            WorkloadError: the batch does not divide among the workers, or hardly any batch has the shape of the first.
        """
        first = next(batches)
        batches = itertools.chain([first], batches)
        size = _size(_shapes(tf, first))
        rows = self.rows(size)
        if self.scaling == "weak":
            yield from itertools.islice(_alike(tf, batches), self.index, None, self.count)
            return
        start = self.index * rows

        def part(leaf: Any) -> Any:
            return leaf[start : start + rows] if np.shape(leaf)[:1] == (size,) else leaf

        for batch in batches:
            if _size(_shapes(tf, batch)) == size:
                yield tf.nest.map_structure(part, batch)

    def of_dataset(self, tf: Any, dataset: Any) -> Any:
        """Return this worker's part of an endless `tf.data.Dataset` of batches. Partial batches are left out.

        Every worker reads the whole dataset, as under `AutoShardPolicy.DATA`. The first batch must be a full one. Under
        weak scaling, batches of another shape than the first one are left out, as in `of_batches`.

        Returns:
            An iterable of batches. Under strong scaling, the start of an iteration raises `WorkloadError` if the batch
            does not divide among the workers.
        """
        message = f"the batch does not divide among {self.count} workers"

        def layout(batch: Any) -> Any:
            if self.scaling == "strong":
                return _size_in_graph(tf, batch)[tf.newaxis]
            return tf.concat([tf.shape(leaf, out_type=tf.int64) for leaf in tf.nest.flatten(batch)], axis=0)

        def mark(first: Any, *batch: Any) -> Any:
            own = layout(batch)
            first = tf.cond(tf.equal(tf.size(first), 0), lambda: own, lambda: first)
            return first, (tf.reduce_all(tf.equal(own, first)), batch)

        def part(_: Any, batch: Any) -> Any:
            if self.scaling == "strong":
                size = _size_in_graph(tf, batch)
                rest = tf.debugging.assert_equal(size % self.count, tf.constant(0, tf.int64), message)
                with tf.control_dependencies([rest]):
                    batch = _rows_in_graph(tf, batch, size, self.index, self.count)
            return batch if len(batch) > 1 else batch[0]

        full = dataset.scan(tf.zeros([0], tf.int64), mark).filter(lambda is_full, _: is_full)
        if self.scaling == "weak":
            full = full.shard(self.count, self.index)
        divided = full.map(part, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
        if self.scaling == "weak":
            return divided
        return _Divided(divided, tf.errors.InvalidArgumentError, message, f"{MULTIPLE} {self.count}.")


def _size_in_graph(tf: Any, batch: Any) -> Any:
    """Return what `_size` returns, as a tensor. A dataset may not know it before it yields the batch."""
    arrays = [leaf for leaf in tf.nest.flatten(batch) if leaf.shape.rank != 0]
    if not arrays:
        raise WorkloadError(NO_ARRAYS)
    lengths = tf.stack([tf.shape(array, out_type=tf.int64)[0] for array in arrays])
    votes = tf.reduce_sum(tf.cast(tf.equal(lengths[:, tf.newaxis], lengths), tf.int64), axis=1)
    return lengths[tf.argmax(votes)]


def _rows_in_graph(tf: Any, batch: Any, size: Any, index: int, count: int) -> Any:
    """Return the rows of one of `count` workers from a batch of `size` examples. Arrays of another length are whole."""

    def rows(leaf: Any) -> Any:
        if leaf.shape.rank == 0:
            return leaf
        is_divided = tf.equal(tf.shape(leaf, out_type=tf.int64)[0], size)
        start, stop = (tf.cast(n * (size // count), tf.int64) for n in (index, index + 1))
        return leaf[tf.where(is_divided, start, 0) : tf.where(is_divided, stop, tf.int64.max)]

    return tf.nest.map_structure(rows, batch)


def _shapes(tf: Any, batch: Any) -> list[tuple[int, ...]]:
    return [tuple(np.shape(leaf)) for leaf in tf.nest.flatten(batch)]


def _size(shapes: Sequence[tuple[int, ...]]) -> int:
    """Return the number of examples: the length that most arrays have. Others, such as weights of classes, may differ.

    Raises:
        WorkloadError: there are only numbers.
    """
    lengths = [shape[0] for shape in shapes if shape]
    if not lengths:
        raise WorkloadError(NO_ARRAYS)
    return statistics.mode(lengths)


def _alike(tf: Any, batches: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield the batches whose arrays have the shapes of those of the first batch.

    Raises:
        WorkloadError: there is hardly any other.
    """
    first: list[tuple[int, ...]] | None = None
    others = 0
    for batch in batches:
        shapes = _shapes(tf, batch)
        first = first or shapes
        if shapes == first:
            others = 0
            yield batch
            continue
        others += 1
        if others == MOST_OTHERS:
            raise WorkloadError(
                f"{others} batches in a row have other shapes than the first one",
                "Give all batches the same shape, or use --scaling strong.",
            )


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
