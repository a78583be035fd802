"""How a worker times its steps, and how long the slowest step of several workers takes."""

from __future__ import annotations

import random
import time

import pytest

from bench.worker.cluster import step_times
from bench.worker.cluster.step_times import StepTimer, expected_maximum, slowest_step


def test_the_expected_maximum_of_equal_constants_is_the_constant() -> None:
    assert expected_maximum([[2.0, 2.0], [2.0]]) == 2.0


def test_the_expected_maximum_counts_each_pair_of_values_once() -> None:
    a, b = [1.0, 4.0, 6.0], [2.0, 5.0]
    assert expected_maximum([a, b]) == pytest.approx(sum(max(x, y) for x in a for y in b) / 6)


def test_the_expected_maximum_of_three_samples_is_that_of_random_draws() -> None:
    source = random.Random(1)
    samples = [[source.expovariate(1) for _ in range(20)] for _ in range(3)]
    drawn = [max(source.choice(sample) for sample in samples) for _ in range(100_000)]
    assert expected_maximum(samples) == pytest.approx(sum(drawn) / len(drawn), rel=0.02)


def test_workers_whose_steps_are_long_in_turns_wait_although_their_means_are_equal() -> None:
    steps = [0.01, 0.03]  # half of the steps take three times as long
    assert slowest_step([0.02, 0.02], [steps, steps]) == pytest.approx(0.025)


def test_single_steps_show_only_how_steps_vary_around_the_mean() -> None:
    assert slowest_step([0.01, 0.03], [[0.5, 0.5], [0.7, 0.7]]) == pytest.approx(0.03)


def test_a_timer_knows_the_mean_of_many_steps_and_single_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    synchronized: list[int] = []

    def sync(value: int) -> float:
        synchronized.append(value)
        return 0.0

    timer = StepTimer(sync)
    step = 0
    while not timer.done:
        timer.tick(step)
        step += 1
        now += 0.1 if step % 2 else 0.3
    assert timer.mean == pytest.approx(0.2, abs=0.02)
    assert {round(seconds, 6) for seconds in timer.single} == {0.1, 0.3}
    assert sum(timer.single) == pytest.approx(step_times.SINGLE_SECONDS, abs=0.3)
    block = range(1, synchronized[1])
    assert not set(block) & set(synchronized)  # steps of the mean do not wait for each other
