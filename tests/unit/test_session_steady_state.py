"""The rule for the end of warm-up, on simulated block times."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.session.steady_state import WINDOW, agree, is_settled, stayed_settled

pytestmark = pytest.mark.once


def noisy(n: int, seed: int, share: float, start: float = 1.0, end: float = 1.0) -> list[float]:
    """Return `n` block times on a line from `start` to `end`, with normal noise. `share` is its standard deviation."""
    rng = random.Random(seed)
    return [(start + (end - start) * i / (n - 1)) * (1 + rng.gauss(0, share)) for i in range(n)]


def test_a_process_needs_at_least_two_windows_to_settle() -> None:
    assert not is_settled([1.0] * (2 * WINDOW - 1))
    assert is_settled([1.0] * 2 * WINDOW)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.02])
def test_constant_times_with_little_noise_settle_immediately(share: float) -> None:
    assert sum(is_settled(noisy(2 * WINDOW, seed, share)) for seed in range(200)) >= 190


def test_constant_times_with_much_noise_settle_within_40_blocks() -> None:
    for seed in range(50):
        times = noisy(40, seed, 0.3)
        assert any(is_settled(times[:n]) for n in range(2 * WINDOW, 41))


@pytest.mark.parametrize("end", [0.25, 4.0])
def test_times_that_keep_rising_or_falling_do_not_settle(end: float) -> None:
    for seed in range(50):
        assert not is_settled(noisy(2 * WINDOW, seed, 0.01, 1.0, end))


def test_a_process_settles_after_a_slow_first_window() -> None:
    times = [9.0, 5.0, 3.0, 2.0, 1.0, 1.01, 0.99, 1.0]
    assert not is_settled(times)
    assert is_settled([*times, 1.0, 1.02, 0.98, 1.0])


def test_a_single_outlier_does_not_prevent_settling() -> None:
    assert is_settled([1.0, 1.0, 1.01, 1.0, 1.0, 7.0, 1.0, 1.01])


@given(st.lists(st.floats(1e-6, 10), min_size=2 * WINDOW, max_size=2 * WINDOW), st.integers(-10, 10))
def test_the_unit_of_time_does_not_matter_for_settling(times: list[float], power: int) -> None:
    assert is_settled(times) == is_settled([t * 2.0**power for t in times])  # powers of two are exact


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=9), st.lists(st.floats(0.1, 10), min_size=1, max_size=9))
def test_agreement_of_windows_is_symmetric(first: list[float], second: list[float]) -> None:
    assert agree(first, second) == agree(second, first)


def test_a_process_that_drifts_during_measurement_did_not_stay_settled() -> None:
    assert stayed_settled(noisy(20, 1, 0.01))
    assert not stayed_settled(noisy(20, 1, 0.01, 1.0, 1.5))
    assert not stayed_settled([1.0] * 10 + [1.2] * 10)


def test_a_process_with_too_few_blocks_to_judge_counts_as_settled() -> None:
    assert stayed_settled([])
    assert stayed_settled([1.0, 9.0, 1.0])
