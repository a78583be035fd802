"""Change points in the history of step times."""

from __future__ import annotations

import random

import pytest

from bench.analyse.changepoints import change_points, level_changes

pytestmark = pytest.mark.once  # ruptures is in the environment of the hub
THRESHOLD = 0.02


def noisy(level: float, count: int, spread: float = 0.01, seed: int = 1) -> list[float]:
    rng = random.Random(seed)
    return [level * (1 + rng.uniform(-spread, spread)) for _ in range(count)]


@pytest.mark.parametrize("count", [0, 1, 5, 6, 40])
def test_a_constant_level_has_no_change_points(count: int) -> None:
    assert change_points(noisy(0.05, count), THRESHOLD) == []
    assert change_points([0.05] * count, THRESHOLD) == []


def test_a_change_point_is_the_first_value_of_a_new_level() -> None:
    values = [*noisy(0.05, 8), *noisy(0.06, 7, seed=2), *noisy(0.04, 5, seed=3)]
    assert change_points(values, THRESHOLD) == [8, 15]


def test_a_level_is_the_median_of_its_values_and_its_change_is_relative_to_the_level_before() -> None:
    first, second = level_changes([1.0, 1.2, 1.0, 2.0, 2.0, 9.0, 1.0, 1.0], [3, 6])
    assert (first.start, first.value, first.change) == (3, 2.0, 1.0)
    assert (second.start, second.value, second.change) == (6, 1.0, -0.5)
    assert level_changes([1.0, 1.0], []) == []


@pytest.mark.parametrize("index", [0, 1, 8, 15, 16])
def test_a_single_outlier_is_not_a_level(index: int) -> None:
    values = noisy(0.05, 17)
    values[index] = 0.09
    assert change_points(values, THRESHOLD) == []


@pytest.mark.parametrize("seed", range(20))
def test_the_c_implementation_agrees_with_the_python_implementation(seed: int) -> None:
    import numpy as np
    import ruptures

    rng = random.Random(seed)
    values = [value for n in range(4) for value in noisy(rng.uniform(0.04, 0.06), rng.randint(2, 15), seed=seed + n)]
    searches: list[tuple[object, float]] = []
    original = ruptures.KernelCPD.predict

    def predict(self: ruptures.KernelCPD, n_bkps: int | None = None, pen: float | None = None) -> list[int]:
        searches.append((self.cost.signal, pen or 0.0))
        positions: list[int] = original(self, n_bkps, pen)
        assert positions == ruptures.Pelt(model="l2", min_size=2, jump=1).fit(np.asarray(self.cost.signal)).predict(pen)
        return positions

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ruptures.KernelCPD, "predict", predict)
        change_points(values, THRESHOLD)
    assert len(searches) == 1


def test_a_change_below_the_threshold_is_ignored() -> None:
    values = [*noisy(0.05, 10, spread=0.0001), *noisy(0.0505, 10, spread=0.0001, seed=2)]
    assert change_points(values, THRESHOLD) == []
    assert change_points(values, 0.001) == [10]
