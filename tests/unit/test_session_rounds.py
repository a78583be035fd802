"""The number of rounds of a trial."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from synthetic import MOMENT, result

from bench.model.result import Result
from bench.model.sample import Block, ProcessSample, Series
from bench.session.rounds import best_rounds

pytestmark = pytest.mark.once


def noisy(levels: Sequence[float], noise: float, name: str) -> Result:
    """Return a result with 20 blocks per trial. Each trial has its level, and each block has random noise."""
    draw = random.Random(name)
    samples = [
        ProcessSample(
            trial=n,
            pid=1,
            started=MOMENT,
            series=[
                Series(
                    blocks=[
                        Block(seconds=0.1 * level * draw.lognormvariate(0, noise), steps=10, cpu_seconds=0.1)
                        for _ in range(20)
                    ]
                )
            ],
        )
        for n, level in enumerate(levels, 1)
    ]
    return result(name, samples=samples)


def pair(levels: Sequence[float], noise: float) -> tuple[Result, Result]:
    return noisy([1.0] * len(levels), noise, "a"), noisy(levels, noise, "b")


def rounds(results: tuple[Result, Result], trial_seconds: float = 1000.0) -> int:
    """Return the rounds for a trial that has had 20 rounds of 0.2 s each and took 8 s to start."""
    return best_rounds([results], 20, 4.0, 8.0, trial_seconds)


def test_steady_blocks_get_no_more_rounds() -> None:
    assert rounds(pair([1.0, 1.001, 0.999, 1.002], 0.001)) == 20


def test_blocks_that_vary_more_than_processes_get_more_rounds() -> None:
    assert rounds(pair([1.0, 1.0, 1.0, 1.0], 0.10)) > 60
    assert rounds(pair([1.0], 0.10)) > 20


def test_processes_that_vary_more_than_blocks_get_no_more_rounds() -> None:
    assert rounds(pair([0.8, 1.0, 1.25, 0.9, 1.1, 1.3], 0.02)) == 20


def test_a_trial_gets_no_more_rounds_than_fit_into_its_time() -> None:
    assert rounds(pair([1.0] * 4, 0.10), trial_seconds=18.0) == 50
    assert rounds(pair([1.0] * 4, 0.10), trial_seconds=9.0) == 20


def test_a_trial_without_valid_times_or_with_too_few_blocks_gets_no_more_rounds() -> None:
    base, other = pair([1.0], 0.1)
    assert best_rounds([], 20, 4.0, 8.0, 1000.0) == 20
    other.samples[0].series[0].blocks[3].seconds = float("nan")
    assert rounds((base, other)) == 20
    del other.samples[0].series[0].blocks[7:]
    assert rounds((base, other)) == 20
