"""Estimates and their intervals, checked against scipy's Student t and simulated noise."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from synthetic import MOMENT, result

from bench.analyse import stats
from bench.analyse.samples import (
    faster_half,
    mean_step,
    paired_contrast,
    process_values,
    typical_ratio,
    typical_step,
    usable_samples,
)
from bench.model.failure import Failure
from bench.model.interval import uncertainty
from bench.model.result import Result
from bench.model.sample import Block, ProcessSample, Series

pytestmark = pytest.mark.once

TIMES = st.floats(1e-6, 1e3)
SAMPLES = st.lists(TIMES, min_size=2, max_size=30)


def blocks(seconds: Sequence[float], steps: int = 1) -> list[Block]:
    """Return blocks of these seconds."""
    return [Block(seconds=value, steps=steps, cpu_seconds=0.0) for value in seconds]


def measured(times: Mapping[int, Sequence[float]], group: str = "g", **changes: Any) -> Result:
    """Return a result with one sample per trial, with these step times."""
    samples = [
        ProcessSample(trial=trial, pid=trial, started=MOMENT, series=[Series(blocks=blocks(seconds))])
        for trial, seconds in times.items()
    ]
    return result(group=group, samples=samples, **changes)


def test_an_interval_equals_scipys_student_t_on_logarithms() -> None:
    values = [0.101, 0.098, 0.107, 0.1, 0.103]
    logs = [math.log(value) for value in values]
    low, high = scipy_stats.t.interval(0.95, len(logs) - 1, loc=statistics.fmean(logs), scale=scipy_stats.sem(logs))
    interval = stats.interval(values)
    assert interval.low is not None
    assert interval.high is not None
    assert (interval.value, interval.low, interval.high) == pytest.approx(
        (scipy_stats.gmean(values), math.exp(low), math.exp(high)), rel=1e-12
    )
    assert (interval.n, interval.confidence) == (5, 0.95)


def test_an_arithmetic_interval_equals_scipys_student_t_and_may_contain_zero() -> None:
    values = [0.0, 0.1, -0.05, 0.02]
    expected = scipy_stats.t.interval(0.95, 3, loc=statistics.fmean(values), scale=scipy_stats.sem(values))
    interval = stats.arithmetic(values)
    assert (interval.low, interval.high) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("n", [2, 3, 5, 30])
def test_the_quantile_equals_scipys(n: int, confidence: float) -> None:
    assert stats.t_quantile(n, confidence) == pytest.approx(scipy_stats.t.ppf((1 + confidence) / 2, n - 1), rel=1e-9)


def test_a_single_process_gives_a_value_without_bounds() -> None:
    for interval in (stats.interval([0.25]), stats.arithmetic([0.25])):
        assert (interval.value, interval.low, interval.high, interval.n, interval.relative_error) == (
            0.25,
            None,
            None,
            1,
            None,
        )


def test_an_interval_of_no_values_is_an_error() -> None:
    with pytest.raises(ValueError, match="no values"):
        stats.interval([])


def test_the_mean_of_positive_differences_may_be_zero() -> None:
    values = [0.001, 0.005]
    assert (stats.arithmetic(values).low or 0.0) > 0
    assert (stats.arithmetic(values, differences=True).low or 0.0) < 0


def test_a_time_of_zero_gives_the_arithmetic_mean() -> None:
    assert stats.interval([0.0, 0.2]).value == pytest.approx(0.1)


@given(SAMPLES, st.floats(1e-3, 1e3))
def test_the_unit_of_time_does_not_matter(values: list[float], scale: float) -> None:
    interval, scaled = stats.interval(values), stats.interval([value * scale for value in values])
    for a, b in zip(
        (interval.value, interval.low, interval.high), (scaled.value, scaled.low, scaled.high), strict=True
    ):
        assert a is not None
        assert b is not None
        assert b == pytest.approx(a * scale, rel=1e-6)
    assert stats.units_for_target(values, 0.03) == pytest.approx(
        stats.units_for_target([value * scale for value in values], 0.03), abs=1
    )


@given(SAMPLES)
def test_inverse_values_have_the_inverse_interval(values: list[float]) -> None:
    interval, inverse = stats.interval(values), stats.interval([1 / value for value in values])
    assert interval.low is not None
    assert inverse.high is not None
    assert inverse.value == pytest.approx(1 / interval.value, rel=1e-9)
    assert inverse.high == pytest.approx(1 / interval.low, rel=1e-6)


@given(st.lists(st.floats(0, 1e3), min_size=2, max_size=30))
def test_the_interval_of_a_mean_of_times_is_never_below_zero(values: list[float]) -> None:
    interval = stats.arithmetic(values)
    assert interval.low is not None
    assert interval.high is not None
    assert 0 <= interval.low <= interval.value <= interval.high


@pytest.mark.parametrize(
    ("error", "text"),
    [(0.031, "known to ±3.1%"), (0.4, "known to ±40%"), (1.1, "known within a factor of 2.6"),
     (3.68, "known within a factor of 7.5"), (4087.426, "hardly known")],
)  # fmt: skip
def test_a_large_uncertainty_is_no_percentage(error: float, text: str) -> None:
    assert uncertainty(error) == text


@given(SAMPLES, st.randoms(use_true_random=False))
def test_the_order_of_processes_does_not_matter(values: list[float], order: random.Random) -> None:
    shuffled = order.sample(values, len(values))
    assert stats.interval(shuffled).value == pytest.approx(stats.interval(values).value, rel=1e-12)
    assert faster_half(blocks(shuffled)) == pytest.approx(faster_half(blocks(values)), rel=1e-12)


@given(SAMPLES)
def test_an_interval_contains_its_value_and_widens_with_confidence(values: list[float]) -> None:
    narrow, wide = stats.interval(values, 0.8), stats.interval(values, 0.99)
    assert narrow.low is not None
    assert narrow.high is not None
    assert wide.low is not None
    assert wide.high is not None
    slack = 1 + 1e-9
    assert wide.low <= narrow.low * slack
    assert narrow.low <= narrow.value * slack
    assert narrow.value <= narrow.high * slack
    assert narrow.high <= wide.high * slack


@pytest.mark.parametrize("n", [2, 5, 12])
def test_95_percent_of_simulated_intervals_contain_the_true_value(n: int) -> None:
    rng = random.Random(7)
    trials = 2000
    covered = 0
    for _ in range(trials):
        interval = stats.interval([math.exp(rng.gauss(math.log(0.02), 0.1)) for _ in range(n)])
        assert interval.low is not None
        assert interval.high is not None
        covered += interval.low <= 0.02 <= interval.high
    # These are the 1/10,000 quantiles of the binomial distribution at 95%.
    assert scipy_stats.binom.ppf(1e-4, trials, 0.95) <= covered <= scipy_stats.binom.ppf(1 - 1e-4, trials, 0.95)


def test_processes_that_agree_need_the_minimum() -> None:
    assert stats.units_for_target([0.1, 0.1, 0.1], 0.03) == 2


def test_the_needed_number_follows_from_the_variance_of_the_pilot() -> None:
    values = [0.100, 0.110, 0.095, 0.104, 0.099]
    spread = statistics.stdev(map(math.log, values))
    expected = math.ceil((scipy_stats.t.ppf(0.975, 4) * spread / math.log(1.03)) ** 2)
    assert expected > 5
    assert stats.units_for_target(values, 0.03) == expected
    assert stats.units_for_target(values, 0.01) > 8 * stats.units_for_target(values, 0.03)


def test_the_needed_number_usually_reaches_the_target() -> None:
    rng = random.Random(3)

    def processes(n: int) -> list[float]:
        return [math.exp(rng.gauss(0, 0.05)) for _ in range(n)]

    reached = 0
    for _ in range(300):
        pilot = processes(5)
        error = stats.interval([*pilot, *processes(max(0, stats.units_for_target(pilot, 0.03) - 5))]).relative_error
        assert error is not None
        reached += error <= 0.03 * 1.05
    assert reached >= 0.7 * 300


def test_the_three_estimators_of_a_process_differ_on_uneven_blocks() -> None:
    uneven = [*blocks([4.0], 4), *blocks([4.0], 2), *blocks([12.0], 4)]  # 1, 2 and 3 seconds per step
    assert typical_step(uneven) == 2.0
    assert mean_step(uneven) == 20.0 / 10
    assert faster_half(uneven) == 1.5


def test_disturbances_in_the_slower_half_do_not_change_the_faster_half() -> None:
    quiet = [1.0, 1.1, 1.2, 1.3]
    assert faster_half(blocks([*quiet, 1.4, 1.5, 1.6, 1.7])) == pytest.approx(
        faster_half(blocks([*quiet, 14.0, 15.0, 16.0, 17.0]))
    )


def test_ratios_are_taken_within_common_trials_only() -> None:
    first = measured({1: [1.0], 2: [10.0], 3: [5.0]})
    other = measured({2: [20.0], 1: [3.0], 4: [7.0]})
    contrast = paired_contrast(first, other)
    assert contrast is not None
    assert contrast.n == 2
    assert contrast.ratio().value == pytest.approx(math.sqrt(6.0))


def test_common_noise_cancels_in_the_ratio() -> None:
    noise = {1: 1.0, 2: 1.7, 3: 0.6}
    first = measured({trial: [0.1 * level, 0.11 * level] for trial, level in noise.items()})
    other = measured({trial: [0.2 * level, 0.22 * level] for trial, level in noise.items()})
    contrast = paired_contrast(first, other)
    assert contrast is not None
    assert (contrast.ratio().low, contrast.ratio().high) == pytest.approx((2.0, 2.0))


def interleaved(first: Sequence[float], other: Sequence[float]) -> tuple[list[Block], list[Block]]:
    """Return the blocks of two interleaved processes. The first process starts two of three rounds."""
    sides = blocks(first), blocks(other)
    for number, (left, right) in enumerate(zip(*sides, strict=True)):
        for offset, block in enumerate((left, right) if number % 3 else (right, left)):
            block.position = 2 * number + offset
    return sides


def test_disturbed_rounds_and_single_blocks_do_not_change_the_interleaved_ratio() -> None:
    factors = [1.0, 1.8, 1.7, 1.0, 1.9, 1.0, 1.8]
    first = [0.1 * factor for factor in factors]
    other = [0.105 * factor for factor in factors]
    other[3] *= 1.7
    base, changed = interleaved(first, other)
    assert math.exp(typical_ratio(base, changed)) == pytest.approx(1.05)
    assert math.exp(typical_ratio(changed, base)) == pytest.approx(1 / 1.05)
    assert typical_ratio(base, changed[:-1]) == pytest.approx(math.log(1.05))  # the last block was interrupted
    assert faster_half(changed) / faster_half(base) != pytest.approx(1.05, rel=0.05)


def test_processes_that_are_not_interleaved_are_compared_by_their_faster_halves() -> None:
    base, other = blocks([1.0, 1.2, 5.0]), blocks([9.0, 2.0, 2.4])
    for side in (base, other):
        for number, block in enumerate(side):
            block.position = number
    assert math.exp(typical_ratio(base, other)) == pytest.approx(2.0)


def test_results_of_different_groups_have_no_paired_ratio() -> None:
    times = {1: [1.0], 2: [1.1]}
    assert paired_contrast(measured(times), measured(times, group="another")) is None


def with_start_positions(
    first: list[float], other: list[float], positions: Sequence[tuple[int | None, int | None]]
) -> tuple[Result, Result]:
    """Return two results whose processes were started in these positions of their trials."""
    sides = []
    for times, side in ((first, 0), (other, 1)):
        document = measured({trial: [seconds] for trial, seconds in enumerate(times, 1)})
        for sample, pair in zip(document.samples, positions, strict=True):
            sample.start_position = pair[side]
        sides.append(document)
    return sides[0], sides[1]


def test_the_cost_of_starting_first_is_removed_from_the_ratio() -> None:
    noise = [1.002, 0.999, 1.0, 1.001, 0.998, 1.0]
    positions = [(0, 1), (1, 0)] * 3
    first = [0.010 * factor * (1.05 if a == 0 else 1) for factor, (a, _) in zip(noise, positions, strict=True)]
    other = [0.0102 * (1.05 if b == 0 else 1) for _, b in positions]
    adjusted = paired_contrast(*with_start_positions(first, other, positions))
    plain = paired_contrast(*with_start_positions(first, other, [(0, 0)] * 6))
    assert adjusted is not None
    assert plain is not None
    assert adjusted.ratio().value == pytest.approx(1.02, rel=0.001)
    assert adjusted.variance < plain.variance / 100
    assert adjusted.freedom == 4


def test_ratios_are_adjusted_even_if_later_trials_have_no_start_positions() -> None:
    first, other = [0.01] * 5, [0.011, 0.0112, 0.0111, 0.0109, 0.011]
    positions: list[tuple[int | None, int | None]] = [(0, 1), (1, 0), (0, 1), (None, None), (None, None)]
    contrast = paired_contrast(*with_start_positions(first, other, positions))
    assert contrast is not None
    assert contrast.freedom == 3


def test_ratios_are_not_adjusted_if_one_side_rarely_started_first() -> None:
    first, other = [0.01] * 5, [0.011, 0.0112, 0.0111, 0.0109, 0.011]
    mostly = paired_contrast(*with_start_positions(first, other, [(0, 1)] * 4 + [(1, 0)]))
    assert mostly is not None
    assert mostly.freedom == 4


def test_95_percent_of_adjusted_intervals_contain_the_true_ratio() -> None:
    rng = random.Random(5)
    covered, trials = 0, 400
    for _ in range(trials):
        positions = [(0, 1), (1, 0), (1, 2)] * 2
        first, other = (
            [0.01 * rng.lognormvariate(0, 0.01) * (1.04 if pair[side] == 0 else 1) for pair in positions]
            for side in (0, 1)
        )
        contrast = paired_contrast(*with_start_positions(first, other, positions))
        assert contrast is not None
        interval = contrast.ratio()
        covered += (interval.low or 0) <= 1.0 <= (interval.high or 0)
    assert covered / trials == pytest.approx(0.95, abs=0.03)


def test_results_without_a_common_trial_have_no_paired_ratio() -> None:
    assert paired_contrast(measured({1: [1.0]}), measured({2: [1.0]})) is None


def test_failed_and_empty_samples_are_ignored() -> None:
    document = measured({1: [1.0], 2: [2.0], 3: [3.0]})
    document.samples[0].failure = Failure(kind="killed", message="…")
    document.samples[1].series[0].blocks = []
    assert process_values(document) == {3: 3.0}


def test_series_other_than_steps_do_not_count_as_steps() -> None:
    document = measured({1: [1.0]})
    document.samples[0].series[0].name = "h2d/4"
    assert process_values(document) == {}
    assert usable_samples(document) == document.samples


def test_a_sum_of_contrasts_has_satterthwaites_degrees_of_freedom() -> None:
    a, b = stats.Contrast(0.1, 0.02, 4, 5), stats.Contrast(0.2, 0.03, 9, 10)
    total = a.plus(b)
    assert (total.mean, total.variance) == pytest.approx((0.3, 0.05))
    assert total.freedom == pytest.approx(0.05**2 / (0.02**2 / 4 + 0.03**2 / 9))
    single = stats.Contrast.paired([0.0], [0.1])
    assert a.plus(single).interval().low is None
    exact = stats.Contrast(0.0, 0.0, math.inf, 5)
    assert exact.plus(a).freedom == pytest.approx(4)
