"""The part of the data that each of several workers computes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bench.errors import WorkloadError
from bench.model.spec import Scaling
from bench.worker.cluster.share import DataShare


def shares(count: int, scaling: Scaling) -> list[DataShare]:
    return [DataShare(index, count, scaling) for index in range(count)]


@pytest.mark.parametrize("scaling", ["strong", "weak"])
def test_the_workers_together_read_each_example_once_and_leave_out_what_fills_no_step(scaling: Scaling) -> None:
    positions = [share.positions(examples=103, batch=8) for share in shares(4, scaling)]
    used = 8 * (103 // 8) if scaling == "strong" else 32 * (103 // 32)
    assert sorted(np.concatenate(positions)) == list(range(used))
    assert len({len(own) for own in positions}) == 1


def test_workers_that_share_a_batch_have_its_examples_in_order() -> None:
    first, second = (share.positions(examples=16, batch=8) for share in shares(2, "strong"))
    assert list(first) == [0, 1, 2, 3, 8, 9, 10, 11]
    assert list(second) == [4, 5, 6, 7, 12, 13, 14, 15]


def test_under_weak_scaling_a_worker_has_whole_batches() -> None:
    first, second = (share.positions(examples=16, batch=4) for share in shares(2, "weak"))
    assert list(first) == [0, 1, 2, 3, 8, 9, 10, 11]
    assert list(second) == [4, 5, 6, 7, 12, 13, 14, 15]


@pytest.mark.parametrize("batch", [9, 1])
def test_a_batch_that_does_not_divide_among_the_workers_is_refused(batch: int) -> None:
    with pytest.raises(WorkloadError, match=f"a batch of {batch} examples does not divide among 2 workers"):
        DataShare(0, 2, "strong").positions(examples=100, batch=batch)


def test_too_few_examples_for_a_step_of_all_workers_are_refused() -> None:
    with pytest.raises(WorkloadError, match="20 examples do not fill a batch of 8 for each of 4 workers"):
        DataShare(0, 4, "weak").positions(examples=20, batch=8)


@pytest.mark.parametrize("scaling", ["strong", "weak"])
def test_batches_are_divided_like_arrays(scaling: Scaling) -> None:
    tf = pytest.importorskip("tensorflow")

    def batches() -> Iterator[tuple[Any, ...]]:
        for start in itertools.count(0, 4):
            yield ({"a": np.arange(start, start + 4)}, np.arange(start, start + 4) * 10)

    for share in shares(2, scaling):
        divided = list(itertools.islice(share.of_batches(tf, batches()), 2))
        read = np.concatenate([batch[0]["a"] for batch in divided])
        assert list(read) == list(share.positions(examples=16, batch=4)[: len(read)])
        assert all(list(inputs["a"] * 10) == list(labels) for inputs, labels in divided)


def test_numbers_and_arrays_of_another_length_are_given_to_every_worker_as_they_are() -> None:
    tf = pytest.importorskip("tensorflow")
    rows, weights = np.arange(8), np.arange(10.0)
    batch = (np.float32(0.5), weights, {"x": rows}, rows)
    for read in (
        next(DataShare(1, 2, "strong").of_batches(tf, itertools.repeat(batch))),
        next(iter(DataShare(1, 2, "strong").of_dataset(tf, tf.data.Dataset.from_tensors(batch).repeat()))),
    ):
        number, whole, inputs, labels = read
        assert float(number) == 0.5
        assert list(np.asarray(whole)) == list(weights)
        assert list(np.asarray(inputs["x"])) == list(np.asarray(labels)) == [4, 5, 6, 7]


def test_a_step_of_numbers_only_cannot_be_divided() -> None:
    tf = pytest.importorskip("tensorflow")
    with pytest.raises(WorkloadError, match="no arrays that can be divided among workers"):
        next(DataShare(0, 2, "strong").of_batches(tf, itertools.repeat((np.float32(1),))))


def varying() -> Iterator[tuple[Any, ...]]:
    """Yield batches of 4 examples. Each has one of three lengths, and its labels have another one."""
    for number in itertools.count():
        yield np.full((4, 5 + number % 3), number), np.full((4, 7 + number % 2), number)


def test_under_weak_scaling_all_workers_get_batches_of_one_shape() -> None:
    tf = pytest.importorskip("tensorflow")
    signature = tuple(tf.TensorSpec([None, None], tf.int64) for _ in range(2))
    for share in shares(2, "weak"):
        dataset = tf.data.Dataset.from_generator(varying, output_signature=signature)
        for source in (share.of_batches(tf, varying()), share.of_dataset(tf, dataset)):
            read = list(itertools.islice(source, 2))
            assert [(tuple(x.shape), tuple(y.shape)) for x, y in read] == [((4, 5), (4, 7))] * 2
            assert [int(x[0, 0]) for x, _ in read] == [6 * share.index, 12 + 6 * share.index]


def test_batches_that_all_differ_in_their_shapes_are_refused_instead_of_read_without_end() -> None:
    tf = pytest.importorskip("tensorflow")
    longer = (np.zeros((4, number)) for number in itertools.count(1))
    with pytest.raises(WorkloadError, match="1000 batches in a row have other shapes than the first one"):
        next(DataShare(1, 2, "weak").of_batches(tf, ((batch,) for batch in longer)))


@pytest.mark.parametrize("scaling", ["strong", "weak"])
def test_every_worker_leaves_out_the_partial_batch_of_a_dataset(scaling: Scaling) -> None:
    tf = pytest.importorskip("tensorflow")
    dataset = tf.data.Dataset.range(11).batch(4).repeat()
    for share in shares(2, scaling):
        read = np.concatenate(list(itertools.islice(share.of_dataset(tf, dataset), 4)))
        expected = share.positions(examples=8, batch=4)
        assert list(read) == list(itertools.islice(itertools.cycle(expected), len(read)))


def test_a_dataset_of_pairs_stays_one_of_pairs() -> None:
    tf = pytest.importorskip("tensorflow")
    dataset = tf.data.Dataset.range(8).map(lambda n: ({"x": n}, n)).batch(4).repeat()
    inputs, labels = next(iter(DataShare(1, 2, "strong").of_dataset(tf, dataset)))
    assert list(inputs["x"].numpy()) == list(labels.numpy()) == [2, 3]


def test_a_dataset_whose_batch_does_not_divide_among_the_workers_is_refused() -> None:
    tf = pytest.importorskip("tensorflow")
    dataset = tf.data.Dataset.range(66).batch(33).repeat()
    with pytest.raises(WorkloadError, match="the batch does not divide among 2 workers") as raised:
        next(iter(DataShare(0, 2, "strong").of_dataset(tf, dataset)))
    assert raised.value.hint == "Choose a batch that is a multiple of 2."


def test_an_error_of_the_program_in_a_dataset_is_not_changed() -> None:
    tf = pytest.importorskip("tensorflow")
    faulty = tf.data.Dataset.range(8).map(lambda n: tf.debugging.check_numerics(tf.math.log(-1.0), "the logarithm"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="the logarithm"):
        next(iter(DataShare(0, 2, "strong").of_dataset(tf, faulty.batch(4))))
