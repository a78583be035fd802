"""The loss of a `train_step` that returns a dict is the same in `fit`, which reports the dict, and in other loops."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.worker.loops import python_step
from bench.worker.synchronize import Synchronizer


def add_n(parts: Sequence[Any]) -> Any:
    """Return the sum, and refuse an empty list as TensorFlow does."""
    if not parts:
        raise ValueError("inputs must be an iterable of at least one Tensor")
    return np.sum(parts)


def flatten(value: Any) -> list[Any]:
    return [leaf for part in value.values() for leaf in flatten(part)] if isinstance(value, dict) else [value]


TF: Any = SimpleNamespace(
    reduce_mean=lambda value: np.float32(np.mean(value)),
    cast=lambda value, dtype: np.asarray(value, dtype),
    constant=np.float32,
    add_n=add_n,
    nest=SimpleNamespace(flatten=flatten),
)

SYNCHRONOUS: Any = SimpleNamespace(
    config=SimpleNamespace(experimental=SimpleNamespace(get_synchronous_execution=lambda: True))
)


@pytest.mark.parametrize(
    ("returned", "loss"),
    [
        ({}, 0.0),
        ({"g_loss": 2.0, "d_loss": 3.0}, 5.0),
        ({"g_loss": np.array([1.0, -3.0]), "d_loss": 2.0}, 1.0),
        ({"losses": {"a": 1.0, "b": np.array([2.0, 4.0])}}, 4.0),
        ({"loss": 7.0, "accuracy": 0.5}, 7.0),
    ],
)
def test_fit_and_step_read_the_same_loss_from_a_dict(returned: dict[str, Any], loss: float) -> None:
    model = SimpleNamespace(train_step=lambda batch: returned)
    rig: Any = SimpleNamespace(has=lambda name: False, compiled=True, is_dataset=False, model=model, tf=TF)
    synchronizer = Synchronizer(TF, "/CPU:0")
    assert synchronizer.loss(returned) == synchronizer.loss(python_step(rig)(1)) == loss


def test_elements_of_an_output_that_are_not_finite_do_not_count() -> None:
    synchronizer = Synchronizer(TF, "/CPU:0")
    output = np.array([3.0, -np.inf, 3.0, np.nan])
    assert synchronizer.loss(output, only_finite=True) == 3.0
    assert synchronizer.loss(np.array([np.nan]), only_finite=True) == 0.0
    assert synchronizer.loss(np.array(np.inf), only_finite=True) == 0.0
    assert np.isnan(synchronizer.loss(output))


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (np.zeros((0, 4)), 0.0),
        (np.array([3 + 4j]), 5.0),
        (np.complex64(3 + 4j), 5.0),
        (SimpleNamespace(flat_values=np.array([5.0])), 5.0),
        (SimpleNamespace(values=np.array([5.0])), 5.0),
    ],
    ids=["no element", "complex array", "complex number", "ragged", "sparse"],
)
def test_any_tensor_of_numbers_can_be_waited_for(value: Any, number: float) -> None:
    synchronizer = Synchronizer(SYNCHRONOUS, "/CPU:0")
    assert synchronizer.sync(value) == synchronizer.loss(value) == number


def test_a_metric_may_be_undefined_while_the_loss_is_finite() -> None:
    logs = {"loss": np.float32(2.0), "precision": np.float32("nan")}
    assert Synchronizer(SYNCHRONOUS, "/CPU:0").sync(logs) == 2.0
