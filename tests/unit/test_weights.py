"""Which weights of a model are drawn again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.worker import weights

pytestmark = pytest.mark.once


def drawn(*values: Any) -> list[Any]:
    """Return the weights of a model after they were drawn."""
    kept: list[Any] = []
    model = SimpleNamespace(get_weights=lambda: list(values), set_weights=kept.extend)
    weights.draw(model, 42)
    return kept


def test_random_kernels_are_drawn_alike_and_constants_stay() -> None:
    rng = np.random.default_rng(1)
    kernel, scales = rng.random((8, 4), dtype="float32"), np.ones((2, 2), "float32")
    (first, kept), (second, _) = drawn(kernel, scales), drawn(rng.random((8, 4), dtype="float32"), scales)
    assert np.array_equal(first, second)
    assert (first.dtype, first.shape) == (kernel.dtype, kernel.shape)
    assert not np.array_equal(first, kernel)
    assert np.array_equal(kept, scales)


def test_a_table_of_integers_is_not_drawn() -> None:
    table = np.arange(12).reshape(3, 4)
    (kept,) = drawn(table)
    assert np.array_equal(kept, table)
