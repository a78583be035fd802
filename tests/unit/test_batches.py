"""The batches that loops take from the data of a workload, without TensorFlow."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.errors import NotApplicable, WorkloadError
from bench.worker import examples, loops
from bench.worker.batches import is_smaller, pipeline, pool

pytestmark = pytest.mark.once


class Dataset:
    """A dataset of a known number of batches."""

    def __init__(self, length: int) -> None:
        self.length = length

    def cardinality(self) -> int:
        return self.length


class Sequence:
    def __len__(self) -> int:
        return 0


def flatten(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in flatten(part)] if isinstance(value, (tuple, list)) else [value]


def map_structure(function: Any, value: Any) -> Any:
    return tuple(map_structure(function, part) for part in value) if isinstance(value, tuple) else function(value)


TF: Any = SimpleNamespace(
    nest=SimpleNamespace(flatten=flatten, map_structure=map_structure),
    data=SimpleNamespace(Dataset=Dataset),
    keras=SimpleNamespace(utils=SimpleNamespace(Sequence=Sequence)),
)


def sentences(*lengths: int, rows: int = 4) -> list[tuple[Any, ...]]:
    """Return batches of padded sentences of these lengths."""
    return [(np.zeros((rows, length)), np.zeros(rows)) for length in lengths]


def rig(batches: list[tuple[Any, ...]]) -> Any:
    """Return a rig whose `inputs` are these batches, again and again."""
    supply = itertools.cycle(batches)
    return SimpleNamespace(
        tf=TF, epoch=None, share=None, has=lambda name: name == "inputs", inputs=lambda: next(supply),
        spec=SimpleNamespace(workload="mine"),
    )  # fmt: skip


def test_a_batch_of_longer_examples_is_no_partial_batch() -> None:
    first, longer = sentences(5, 9)
    (partial,) = sentences(5, rows=3)
    assert not is_smaller(TF, longer, first)
    assert is_smaller(TF, partial, first)
    assert {x.shape for x, _ in pool(rig(sentences(5, 7, 9)))} == {(4, 5), (4, 7), (4, 9)}


def test_batches_of_different_shapes_do_not_fit_into_one_graph() -> None:
    with pytest.raises(NotApplicable, match="the batches of mine differ in shape"):
        loops.fused_function(rig(sentences(5, 7)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Dataset(0), "`data` of mine returned no batch"),
        (Sequence(), "`data` of mine returned no batch"),
        ((np.zeros((0, 8)), np.zeros(0)), "`data` of mine returned no example"),
    ],
)
def test_data_without_a_batch_is_refused_with_a_hint(data: Any, message: str) -> None:
    with pytest.raises(WorkloadError, match=message) as caught:
        examples.check(TF, data, "mine", has_batch=True)
    assert "drop_remainder" in caught.value.hint


def test_data_whose_length_is_unknown_may_turn_out_to_be_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.worker.batches.batches", lambda rig: iter(()))
    with pytest.raises(WorkloadError, match="the data of mine holds no batch"):
        pool(rig([]))


def test_a_loop_in_one_thread_is_not_compared_with_parallel_workers_of_a_keras_dataset() -> None:
    parallel: Any = SimpleNamespace(
        tf=TF, share=None, is_dataset=False, is_py_dataset=True, data=SimpleNamespace(workers=4),
        spec=SimpleNamespace(workload="mine"), compiled=True,
    )  # fmt: skip
    with pytest.raises(NotApplicable, match="the PyDataset of mine has 4 workers"):
        pipeline(parallel)
