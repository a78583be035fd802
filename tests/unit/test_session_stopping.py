"""When a run has measured enough."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from test_analyse_compare import measured

from bench.analyse import stats
from bench.analyse.stats import Contrast
from bench.config.settings import RunSettings, load
from bench.model.result import Interval, Projection
from bench.session import stopping
from bench.session.design import PILOT, Pairs, neighbours, with_first

SETTINGS: RunSettings = load(max_time="2m", max_processes="30")


def accuracy(results: list[Any], target: float, pairs: Pairs = with_first) -> stopping.Accuracy | None:
    return stopping.accuracy(results, target, pairs)


def pair(ratios: list[float]) -> list[Any]:
    return [measured([0.01] * len(ratios)), measured([0.01 * r for r in ratios], name="b", loop="fit")]


def test_one_spec_is_done_when_its_step_is_known_to_the_target() -> None:
    found = accuracy([measured([0.0100, 0.0101, 0.0099, 0.0100, 0.0101])], 0.03)
    assert found is not None
    assert found.settled
    wide = accuracy([measured([0.010, 0.012, 0.009, 0.011, 0.008])], 0.03)
    assert wide is not None
    assert not wide.settled
    assert wide.needed is not None
    assert wide.needed > 5


@pytest.mark.parametrize(
    ("centre", "most", "why"),
    [(2.0, 3, "target"), (1.08, 3, None), (1.08, 5, "target"), (1.0, 3, None)],
)
def test_only_what_is_clear_is_said_before_the_pilot_is_over(centre: float, most: int, why: str | None) -> None:
    noise = (1.0, 1.01, 0.99, 1.005, 0.995)
    found = accuracy(pair([centre * r for r in noise[:most]]), 0.02)
    assert stopping.reason(found, most, 10.0, 5.0, SETTINGS, PILOT) == why


@pytest.mark.parametrize(("seconds", "room"), [(24.0, True), (24.1, False)])
def test_there_is_room_for_a_pilot_while_five_such_trials_fit_into_the_cap(seconds: float, room: bool) -> None:
    assert stopping.has_time_for_pilot(seconds, SETTINGS, PILOT) is room


@pytest.mark.parametrize(
    ("first", "others", "trials"), [(5.0, 4.0, 5), (30.0, 15.5, 4), (30.0, 11.0, 5), (44.0, 29.0, 2)]
)
def test_as_many_trials_as_fit_into_the_time_come_first_and_what_is_left_is_shared_by_their_turns(
    first: float, others: float, trials: int
) -> None:
    settings: RunSettings = load(max_time="90s")
    lengths: list[float] = []
    for trial in range(1, trials + 1):
        took = others if lengths else first
        lengths.append(max(took, stopping.trial_seconds(trial, sum(lengths) + took, took, settings, PILOT)))
    assert 80.0 < sum(lengths) <= 90.0
    assert sum(lengths) + others > 90.0 or trials == PILOT  # no other one would have fitted
    assert max(lengths[1:]) < 1.5 * min(lengths[1:])
    assert stopping.trial_seconds(2, 60.0, 29.0, load(max_time="5m"), PILOT) == 29.0  # which has time for all


@pytest.mark.parametrize("trial", [1, PILOT, 9])
def test_the_first_trial_and_those_after_the_pilot_take_their_share_whatever_went_before(trial: int) -> None:
    assert stopping.trial_seconds(trial, 200.0, 5.0, SETTINGS, PILOT) == pytest.approx(0.95 * 90.0 / PILOT)


@pytest.mark.parametrize("centre", [0.8, 1.0, 1.25])
def test_a_comparison_is_done_when_its_verdict_is_settled_whatever_the_width(centre: float) -> None:
    found = accuracy(pair([centre * r for r in (1.0, 1.004, 0.996, 1.003, 0.998)]), 0.02)
    assert found is not None
    assert found.settled


def test_a_comparison_is_not_done_while_one_of_its_verdicts_is_open() -> None:
    third = measured([0.010, 0.0105, 0.0099, 0.0104, 0.010], name="c", loop="step")
    found = accuracy([*pair([2.0] * 5), third], 0.02)
    assert found is not None
    assert not found.settled


def test_a_ladder_is_done_when_neighbours_are_told_apart() -> None:
    near = [measured([0.0100] * 5, name="a"), *pair([3.0, 3.02, 2.99, 3.01, 3.0])]
    near[1] = measured([0.0100 * r for r in (1.0, 1.05, 0.96, 1.04, 0.99)], name="b", loop="step")
    near[2] = measured([0.030 * r for r in (1.0, 1.05, 0.96, 1.04, 0.99)], name="c", loop="fused")
    first, chained = accuracy(near, 0.02), accuracy(near, 0.02, pairs=neighbours)
    assert first is not None
    assert chained is not None
    assert (first.settled, chained.settled) == (False, False)  # a and b are not told apart either way
    told = accuracy(near[1:], 0.02, pairs=neighbours)
    assert told is not None
    assert told.settled
    assert told.decided


@pytest.mark.parametrize("apart", [2.3, 30.0, -30.0])
def test_two_trials_whose_ratios_are_worlds_apart_are_undecided_whatever_a_float_holds(apart: float) -> None:
    found = stopping.accuracy_of_contrasts([Contrast.paired([0.0, 0.0], [0.0, apart])], 0.02)
    assert found is not None
    assert (found.settled, found.decided, found.clear) == (False, False, False)
    assert found.needed is None or found.needed > 2
    looks = Contrast.paired([0.0, 0.0], [0.0, apart]).ratio(0.999)
    assert looks.low == pytest.approx(0.0, abs=1e-100)
    assert looks.high == math.inf
    assert stats.inverse(looks).low == 0.0


def test_a_ratio_too_near_the_threshold_says_that_no_number_is_enough() -> None:
    found = accuracy(pair([1.02 * r for r in (1.0, 1.02, 1 / 1.02, 1.01, 1 / 1.01)]), 0.02)
    assert found is not None
    assert not found.settled
    assert found.needed is None


def test_looking_again_and_again_stops_identical_programs_at_a_wrong_verdict_hardly_ever() -> None:
    rng = random.Random(3)
    wrong = 0
    for _ in range(400):
        ratios = [rng.lognormvariate(0, 0.03) for _ in range(12)]
        for n in range(2, 13):
            found = accuracy(pair(ratios[:n]), 0.02)
            if stopping.reason(found, n, 0.0, 0.0, SETTINGS, PILOT):
                from bench.analyse.compare import compare

                first, other = pair(ratios[:n])
                wrong += compare(first, other).verdict != "same"
                break
    assert wrong <= 8  # 2 in 100, were the noise as large as on a bad day


@pytest.mark.parametrize(
    ("known", "trials", "elapsed", "expected"),
    [
        (stopping.Accuracy(0.01, 5, True), 5, 10.0, "target"),
        (stopping.Accuracy(0.01, 5, True), 4, 10.0, None),
        (stopping.Accuracy(0.09, 50, False), 30, 10.0, "max-processes"),
        (stopping.Accuracy(0.09, 50, False), 7, 118.0, "max-time"),
        (None, 1, 118.0, None),
        (None, 1, 121.0, "max-time"),
    ],
)
def test_a_cap_or_the_target_ends_a_run(
    known: stopping.Accuracy | None, trials: int, elapsed: float, expected: str | None
) -> None:
    assert stopping.reason(known, trials, elapsed, 5.0, SETTINGS, PILOT) == expected


@pytest.mark.parametrize(("training", "most"), [(10.0, 45.0), (300.0, 60.0), (3600.0, 90.0)])
def test_an_answer_comes_five_times_as_soon_as_the_training_that_it_foretells(training: float, most: float) -> None:
    projection = Projection(
        steps=1, build_and_fit_seconds=Interval(value=training), total_seconds=Interval(value=training)
    )
    assert stopping.limited_by_projection(load(), projection).max_time == most
    assert stopping.limited_by_projection(SETTINGS, projection).max_time == 120.0  # as was asked for
    assert stopping.limited_by_projection(load(), None).max_time == 90.0
