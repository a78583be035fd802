"""The rule for the end of warm-up, on block times whose truth is known."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.session.steady_state import WINDOW, agree, is_settled, stayed_settled

pytestmark = pytest.mark.once


def noisy(n: int, seed: int, share: float, start: float = 1.0, end: float = 1.0) -> list[float]:
    """Block times on a line from start to end, with normal noise of that share."""
    rng = random.Random(seed)
    return [(start + (end - start) * i / (n - 1)) * (1 + rng.gauss(0, share)) for i in range(n)]


def test_two_windows_are_the_least_that_can_settle() -> None:
    assert not is_settled([1.0] * (2 * WINDOW - 1))
    assert is_settled([1.0] * 2 * WINDOW)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.02])
def test_a_constant_with_noise_settles_at_once(share: float) -> None:
    assert sum(is_settled(noisy(2 * WINDOW, seed, share)) for seed in range(200)) >= 190


def test_a_constant_with_much_noise_settles_soon() -> None:
    for seed in range(50):
        times = noisy(40, seed, 0.3)
        assert any(is_settled(times[:n]) for n in range(2 * WINDOW, 41))


@pytest.mark.parametrize("end", [0.25, 4.0])
def test_a_ramp_does_not_settle(end: float) -> None:
    for seed in range(50):
        assert not is_settled(noisy(2 * WINDOW, seed, 0.01, 1.0, end))


def test_a_slow_first_window_is_left_behind() -> None:
    times = [9.0, 5.0, 3.0, 2.0, 1.0, 1.01, 0.99, 1.0]
    assert not is_settled(times)
    assert is_settled([*times, 1.0, 1.02, 0.98, 1.0])


def test_one_odd_block_does_not_unsettle() -> None:
    assert is_settled([1.0, 1.0, 1.01, 1.0, 1.0, 7.0, 1.0, 1.01])


@given(st.lists(st.floats(1e-6, 10), min_size=2 * WINDOW, max_size=2 * WINDOW), st.integers(-10, 10))
def test_another_unit_of_time_changes_no_verdict(times: list[float], power: int) -> None:
    assert is_settled(times) == is_settled([t * 2.0**power for t in times])  # a power of two, so that no digit is lost


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=9), st.lists(st.floats(0.1, 10), min_size=1, max_size=9))
def test_agreement_goes_both_ways(one: list[float], other: list[float]) -> None:
    assert agree(one, other) == agree(other, one)


def test_a_process_that_drifts_while_it_is_measured_did_not_stay() -> None:
    assert stayed_settled(noisy(20, 1, 0.01))
    assert not stayed_settled(noisy(20, 1, 0.01, 1.0, 1.5))
    assert not stayed_settled([1.0] * 10 + [1.2] * 10)


def test_too_few_blocks_to_tell_count_as_stayed() -> None:
    assert stayed_settled([])
    assert stayed_settled([1.0, 9.0, 1.0])
