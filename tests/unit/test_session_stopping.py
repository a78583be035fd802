"""The rules that stop a run: accuracy, the target and the time limits."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from test_analyse_compare import measured

from bench.analyse.prior import Prior
from bench.analyse.stats import Contrast
from bench.config.settings import RunSettings, load
from bench.model.interval import Interval
from bench.model.result import Projection
from bench.session import stopping
from bench.session.design import PILOT, Pairs, neighbours, with_first
from bench.study.sweep import POINT

SETTINGS: RunSettings = load(max_time="2m", max_processes="30")


def accuracy(results: list[Any], target: float, pairs: Pairs = with_first) -> stopping.Accuracy | None:
    return stopping.accuracy(results, target, pairs)


def pair(ratios: list[float]) -> list[Any]:
    return [measured([0.01] * len(ratios)), measured([0.01 * r for r in ratios], name="b", loop="fit")]


def test_a_single_spec_is_settled_when_its_step_time_reaches_the_target_error() -> None:
    narrow = accuracy([measured([0.0100, 0.0101, 0.0099, 0.0100, 0.0101])], 0.03)
    assert narrow is not None
    assert narrow.settled
    wide = accuracy([measured([0.010, 0.012, 0.009, 0.011, 0.008])], 0.03)
    assert wide is not None
    assert not wide.settled
    assert wide.needed is not None
    assert wide.needed > 5


@pytest.mark.parametrize(
    ("centre", "trials", "reason"),
    [(2.0, 3, "target"), (1.08, 3, None), (1.08, 5, "target"), (1.0, 3, None)],
)
def test_a_run_stops_before_the_end_of_the_pilot_only_if_the_result_is_clear(
    centre: float, trials: int, reason: str | None
) -> None:
    noise = (1.0, 1.01, 0.99, 1.005, 0.995)
    measured_accuracy = accuracy(pair([centre * r for r in noise[:trials]]), 0.02)
    assert stopping.reason(measured_accuracy, trials, 10.0, 5.0, SETTINGS, PILOT) == reason


@pytest.mark.parametrize(
    ("centre", "trials", "decided"),
    [
        (2.0, 3, True),  # clearly slower
        (1.08, 3, False),
        (1.08, 5, True),
        (0.5, 3, True),  # clearly faster, and its gain is known
        (0.99, 5, True),  # not the same by the threshold, but it surely saves less than 5%
        (0.96, 3, False),
    ],
)
def test_a_what_if_needs_no_more_trials_once_it_is_faster_slower_or_without_useful_gain(
    centre: float, trials: int, decided: bool
) -> None:
    noise = (1.0, 1.01, 0.99, 1.005, 0.995)
    base, other = pair([centre * r for r in noise[:trials]])
    assert stopping.is_decided(base, other, SETTINGS, PILOT, 0.95) is decided


@pytest.mark.parametrize(("last_trial", "trials"), [(15.0, 2), (25.0, 1)])
def test_a_clear_comparison_stops_after_two_trials_or_after_one_if_they_are_long(
    last_trial: float, trials: int
) -> None:
    clear = stopping.accuracy_of_contrasts([Contrast.paired([0.0], [math.log(1.5)], Prior(0.01**2))], 0.02)
    assert clear is not None
    assert clear.clear
    stops = [stopping.reason(clear, n, n * last_trial, last_trial, SETTINGS, PILOT) for n in (1, 2)]
    assert stops.index("target") + 1 == trials


def test_a_clear_point_of_a_sweep_still_has_three_trials_so_that_its_throughput_has_an_interval() -> None:
    clear = stopping.accuracy_of_contrasts([Contrast.paired([0.0], [math.log(1.5)], Prior(0.01**2))], 0.02)
    stops = [stopping.reason(clear, n, 25.0 * n, 25.0, SETTINGS, PILOT, POINT.clear_trials) for n in (1, 2, 3)]
    assert stops == [None, None, "target"]


def test_one_trial_on_a_noisy_machine_is_not_clear() -> None:
    noisy = stopping.accuracy_of_contrasts([Contrast.paired([0.0], [math.log(1.5)], Prior(0.1**2))], 0.02)
    assert noisy is not None
    assert (noisy.clear, noisy.needed) == (False, 2)


@pytest.mark.parametrize(("seconds", "fits"), [(24.0, True), (24.1, False)])
def test_a_pilot_runs_only_if_five_trials_fit_into_the_time_limit(seconds: float, fits: bool) -> None:
    assert stopping.has_time_for_pilot(seconds, SETTINGS, PILOT) is fits


@pytest.mark.parametrize(
    ("first", "others", "trials"), [(5.0, 4.0, 5), (30.0, 15.5, 4), (30.0, 11.0, 5), (44.0, 29.0, 2)]
)
def test_the_time_limit_is_filled_with_trials_and_the_remaining_time_is_shared_among_them(
    first: float, others: float, trials: int
) -> None:
    settings: RunSettings = load(max_time="90s")
    lengths: list[float] = []
    for trial in range(1, trials + 1):
        seconds = others if lengths else first
        lengths.append(max(seconds, stopping.trial_seconds(trial, sum(lengths) + seconds, seconds, settings, PILOT)))
    assert 80.0 < sum(lengths) <= 90.0
    assert sum(lengths) + others > 90.0 or trials == PILOT  # another trial would not have fitted
    assert max(lengths[1:]) < 1.5 * min(lengths[1:])
    # A longer limit has time for all trials as they are.
    assert stopping.trial_seconds(2, 60.0, 29.0, load(max_time="5m"), PILOT) == 29.0


@pytest.mark.parametrize("trial", [1, PILOT, 9])
def test_the_first_trial_and_those_from_the_end_of_the_pilot_have_a_fixed_share_of_the_time(trial: int) -> None:
    assert stopping.trial_seconds(trial, 200.0, 5.0, SETTINGS, PILOT) == pytest.approx(0.95 * 90.0 / PILOT)


@pytest.mark.parametrize("centre", [0.8, 1.0, 1.25])
def test_a_comparison_is_settled_when_its_verdict_is_decided_however_wide_its_interval_is(centre: float) -> None:
    comparison = accuracy(pair([centre * r for r in (1.0, 1.004, 0.996, 1.003, 0.998)]), 0.02)
    assert comparison is not None
    assert comparison.settled


def test_a_comparison_is_not_settled_while_one_of_its_verdicts_is_undecided() -> None:
    third = measured([0.010, 0.0105, 0.0099, 0.0104, 0.010], name="c", loop="step")
    comparison = accuracy([*pair([2.0] * 5), third], 0.02)
    assert comparison is not None
    assert not comparison.settled


def test_a_ladder_is_settled_when_the_verdict_of_each_pair_of_neighbours_is_decided() -> None:
    levels = [measured([0.0100] * 5, name="a"), *pair([3.0, 3.02, 2.99, 3.01, 3.0])]
    levels[1] = measured([0.0100 * r for r in (1.0, 1.05, 0.96, 1.04, 0.99)], name="b", loop="step")
    levels[2] = measured([0.030 * r for r in (1.0, 1.05, 0.96, 1.04, 0.99)], name="c", loop="fused")
    with_baseline, with_neighbour = accuracy(levels, 0.02), accuracy(levels, 0.02, pairs=neighbours)
    assert with_baseline is not None
    assert with_neighbour is not None
    # In both cases a and b are too close for a verdict.
    assert (with_baseline.settled, with_neighbour.settled) == (False, False)
    distinct = accuracy(levels[1:], 0.02, pairs=neighbours)
    assert distinct is not None
    assert distinct.settled
    assert distinct.decided


@pytest.mark.parametrize("logarithm", [2.3, 30.0, -30.0])
def test_two_trials_with_extremely_different_ratios_are_undecided_and_do_not_overflow(logarithm: float) -> None:
    contrast = stopping.accuracy_of_contrasts([Contrast.paired([0.0, 0.0], [0.0, logarithm])], 0.02)
    assert contrast is not None
    assert (contrast.settled, contrast.decided, contrast.clear) == (False, False, False)
    assert contrast.needed is None or contrast.needed > 2
    ratio = Contrast.paired([0.0, 0.0], [0.0, logarithm]).ratio(0.999)
    assert ratio.low == pytest.approx(0.0, abs=1e-100)
    assert ratio.high == math.inf
    assert ratio.inverse.low == 0.0


def test_a_ratio_too_close_to_the_threshold_has_no_sufficient_number_of_trials() -> None:
    comparison = accuracy(pair([1.02 * r for r in (1.0, 1.02, 1 / 1.02, 1.01, 1 / 1.01)]), 0.02)
    assert comparison is not None
    assert not comparison.settled
    assert comparison.needed is None


def test_checking_after_every_trial_rarely_stops_at_a_wrong_verdict() -> None:
    rng = random.Random(3)
    wrong = 0
    for _ in range(400):
        ratios = [rng.lognormvariate(0, 0.03) for _ in range(12)]
        for n in range(2, 13):
            comparison = accuracy(pair(ratios[:n]), 0.02)
            if stopping.reason(comparison, n, 0.0, 0.0, SETTINGS, PILOT):
                from bench.analyse.compare import compare

                first, other = pair(ratios[:n])
                wrong += compare(first, other).verdict != "same"
                break
    assert wrong <= 8  # 2%, with as much noise as on a busy machine


@pytest.mark.parametrize(
    ("accuracy", "trials", "elapsed", "expected"),
    [
        (stopping.Accuracy(0.01, 5, True), 5, 10.0, "target"),
        (stopping.Accuracy(0.01, 5, True), 4, 10.0, None),
        (stopping.Accuracy(0.09, 50, False), 30, 10.0, "max-processes"),
        (stopping.Accuracy(0.09, 50, False), 7, 118.0, "max-time"),
        (None, 1, 118.0, None),
        (None, 1, 121.0, "max-time"),
    ],
)
def test_a_run_ends_at_its_target_or_at_a_cap(
    accuracy: stopping.Accuracy | None, trials: int, elapsed: float, expected: str | None
) -> None:
    assert stopping.reason(accuracy, trials, elapsed, 5.0, SETTINGS, PILOT) == expected


@pytest.mark.parametrize(("training", "limit"), [(10.0, 45.0), (300.0, 60.0), (3600.0, 90.0)])
def test_the_default_time_limit_is_a_fifth_of_the_projected_training_within_bounds(
    training: float, limit: float
) -> None:
    projection = Projection(
        steps=1, build_and_fit_seconds=Interval(value=training), total_seconds=Interval(value=training)
    )
    assert stopping.with_projected_limit(load(), projection).max_time == limit
    # An explicit --max-time has precedence.
    assert stopping.with_projected_limit(SETTINGS, projection).max_time == 120.0
    assert stopping.with_projected_limit(load(), None).max_time == 90.0
