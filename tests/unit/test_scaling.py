"""What the results of a scaling study show, from steps whose parts are known."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic import interval, measured
from synthetic_scaling import scaling_results

from bench.analyse.same_answer import check_same_answer
from bench.analyse.scaling import scaling_of
from bench.analyse.summary import summarize
from bench.model.facts import Facts
from bench.model.failure import Failure
from bench.model.interval import Interval
from bench.model.result import Price, Projection, Result, Summary
from bench.model.scaling import ScalingStudy
from bench.model.spec import Loop, Workers

TRIALS = 3
GRADIENTS = 4_000_000


def level(
    seconds: float, count: int = 1, strategy: str = "multi-worker", peers: tuple[float, ...] = (), loop: Loop = "step",
    **fields: object,
) -> Result:  # fmt: skip
    workers = Workers(count=count, strategy=strategy, **fields)
    result = measured(
        f"{loop} {workers.label}", [seconds] * TRIALS, group="study", parent="study", loop=loop, workers=workers
    )
    for sample in result.samples:
        sample.peer_step_ratios = [peer / seconds for peer in peers]
        sample.facts = Facts(gradient_bytes=GRADIENTS)
    return result


def known(with_input: bool = True) -> list[Result]:
    """Return the levels of two workers. Their step of 66 ms has known parts."""
    on_host_batches = [
        level(0.080, strategy="none", loop="host-batches"),
        level(0.045, 2, reduce=False, peers=(0.048,), loop="host-batches"),
    ]
    return [
        level(0.100, strategy="none"),
        level(0.104),
        level(0.066, 2),
        level(0.055, 2, reduce=False, peers=(0.060,)),
        *(on_host_batches if with_input else []),
    ]


def parts(study: ScalingStudy, workers: int = 2) -> dict[str, float]:
    (size,) = (size for size in study.sizes if size.workers == workers)
    return {part.name: round(part.seconds.value * 1000, 6) for part in size.parts}


def test_the_parts_of_a_step_are_differences_between_levels_and_add_up() -> None:
    study = scaling_of(known(), 0.02)
    assert parts(study) == {
        "ideal": 50, "strategy": 4, "input": 1, "batch": 2.5, "waiting": 2.5, "all-reduce": 6
    }  # fmt: skip
    assert parts(study, 1) == {"ideal": 100, "strategy": 4}


def test_without_batches_in_memory_the_input_is_a_part_of_the_computation() -> None:
    assert parts(scaling_of(known(with_input=False), 0.02)) == {
        "ideal": 50, "strategy": 4, "batch": 3.5, "waiting": 2.5, "all-reduce": 6
    }  # fmt: skip


def test_the_bandwidth_is_the_bytes_of_a_ring_over_the_time_of_the_all_reduce() -> None:
    (_, size) = scaling_of(known(), 0.02).sizes
    assert size.all_reduce_bytes == GRADIENTS
    assert size.bandwidth == pytest.approx(GRADIENTS / 0.006)


def test_the_bounds_follow_from_the_speed_up_and_the_bandwidth() -> None:
    study = scaling_of(known(), 0.02)
    size = study.sizes[1]
    assert size.speed_up is not None
    assert size.efficiency is not None
    assert size.speed_up.value == pytest.approx(100 / 66)
    assert size.efficiency.value == pytest.approx(50 / 66)
    assert study.serial_share == pytest.approx(0.32)
    assert study.amdahl_bound == pytest.approx(1 / 0.32)
    assert study.bandwidth_bound == pytest.approx(0.1 / (2 * 0.006))


def test_a_slow_worker_is_named_only_if_waiting_for_it_matters() -> None:
    slow = [result if result.spec.workers != Workers(count=2, strategy="multi-worker", reduce=False) else
            level(0.05, 2, reduce=False, peers=(0.064,)) for result in known(with_input=False)]  # fmt: skip
    assert scaling_of(slow, 0.02).sizes[1].slowest_worker == 1
    assert scaling_of(known(), 0.02).sizes[1].slowest_worker is None


def test_workers_that_are_slow_in_turns_wait_for_each_other() -> None:
    results = known(with_input=False)
    for sample in results[3].samples:  # on average, steps take 55 and 60 ms, and the slower of two steps 62 ms
        sample.slowest_step_ratio = 0.062 / 0.055
    study = scaling_of(results, 0.02)
    assert parts(study) == {"ideal": 50, "strategy": 4, "batch": 3.5, "waiting": 4.5, "all-reduce": 4}
    assert study.sizes[1].slowest_worker is None  # none of them is much slower on average


def test_under_weak_scaling_the_ideal_is_the_step_of_one_worker() -> None:
    results = [
        level(0.100, strategy="none"),
        level(0.104),
        level(0.110, 2, scaling="weak"),
        level(0.105, 2, scaling="weak", reduce=False, peers=(0.105,)),
    ]
    study = scaling_of(results, 0.02)
    size = study.sizes[1]
    assert parts(study) == {"ideal": 100, "strategy": 4, "batch": 1, "waiting": 0, "all-reduce": 5}
    assert size.efficiency is not None
    assert size.efficiency.value == pytest.approx(100 / 110)
    assert study.amdahl_bound is None


@pytest.mark.parametrize(("total", "batch"), [(1000, 32), (None, None)], ids=["declared", "read by the worker"])
def test_under_weak_scaling_each_step_takes_the_place_of_one_step_per_worker(
    total: int | None, batch: int | None
) -> None:
    one, four = level(0.1), level(0.1, 4, scaling="weak")
    for result in (one, four):
        for sample in result.samples:
            sample.facts = Facts(total_steps=1000, batch=32)
        summarize(result, total, batch)
    assert one.projection is not None
    assert four.projection is not None
    assert (one.projection.steps, four.projection.steps, four.projection.planned_steps) == (1000, 250, 250)
    assert one.summary.examples_per_second == pytest.approx(320)
    assert four.summary.examples_per_second == pytest.approx(4 * 320)


def test_the_replicas_of_one_process_have_no_part_of_their_own_for_waiting() -> None:
    mirrored: dict[str, Any] = {"strategy": "mirrored", "loop": "fit"}
    results = [
        level(0.100, strategy="none", loop="fit"),
        level(0.104, **mirrored),
        level(0.066, 2, **mirrored),
        level(0.058, 2, reduce=False, **mirrored),
    ]
    study = scaling_of(results, 0.02)
    assert parts(study) == {"ideal": 50, "strategy": 4, "batch": 4, "all-reduce": 8}
    assert study.sizes[1].slowest_worker is None


def test_a_level_that_failed_leaves_the_speed_up_without_parts() -> None:
    results = known()
    results[3].failure = Failure(kind="lost-worker", message="worker 1 was killed by SIGKILL", hint="Look at the node.")
    study = scaling_of(results, 0.02)
    size = study.sizes[1]
    assert size.parts == []
    assert size.speed_up is not None
    assert study.failures == ["2 workers, no all-reduce, step: worker 1 was killed by SIGKILL"]
    assert study.failure_hint == "Look at the node."


def test_a_size_that_failed_says_why_and_what_to_do() -> None:
    results = known()
    results[2].failure = Failure(
        kind="error", message="worker 1: ValueError: x", hint="Its last lines are below.", last_lines=["ValueError: x"]
    )
    size = scaling_of(results, 0.02).sizes[1]
    assert (size.failure, size.hint) == ("worker 1: ValueError: x", "Its last lines are below.\nValueError: x")


def test_a_size_that_was_not_measured_before_the_study_ended_did_not_fail() -> None:
    results = known()
    results[2] = level(0.1, 2)
    results[2].samples, results[2].summary = [], Summary()
    size = scaling_of(results, 0.02).sizes[1]
    assert (size.step_seconds, size.failure, size.refused) == (None, None, None)


def test_a_size_whose_losses_differ_from_those_of_one_worker_is_refused() -> None:
    results = known()
    for result in results:
        for sample in result.samples:
            sample.first_losses = [2.0, 1.9, 1.8, 1.7, 1.6]
    for sample in results[2].samples:
        sample.first_losses = [2.0, 1.5, 1.2, 1.0, 0.9]
    for sample in (
        results[3].samples + results[5].samples
    ):  # each worker trains a model of its own, so its losses may differ
        sample.first_losses = [3.0, 2.5, 2.2, 2.0, 1.9]
    check_same_answer(results)
    assert [result.failure is not None for result in results] == [False, False, True, False, False, False]
    size = scaling_of(results, 0.02).sizes[1]
    assert size.refused is not None
    assert "differ from those of cpu, step, no strategy" in size.refused
    assert size.speed_up is None


def test_a_size_says_whether_its_losses_were_compared() -> None:
    def compared(results: list[Result]) -> list[bool | None]:
        return [size.losses_compared for size in scaling_of(results, 0.02).sizes]

    results = [level(0.100, strategy="none"), level(0.104), level(0.066, 2)]
    assert compared(results) == [False, False]  # there are no losses
    for result in results:
        for sample in result.samples:
            sample.first_losses = [2.3, 2.2]
    assert compared(results) == [True, True]
    weak = [*results[:2], level(0.066, 2, scaling="weak")]
    weak[2].samples[0].first_losses = [2.3, 2.2]
    assert compared(weak) == [True, False]
    for sample in results[2].samples:
        sample.loss_precision = "changed"
    assert compared(results) == [True, False]


def test_the_fastest_size_is_named_only_if_the_intervals_are_apart() -> None:
    assert scaling_of(scaling_results(), 0.02).fastest == 4
    assert scaling_of(scaling_results(steps={1: 0.104, 2: 0.0600, 4: 0.0601}), 0.02).fastest is None


def trained(seconds: dict[int, float], start: dict[int, float], error: float = 0.02) -> ScalingStudy:
    """Return a study whose trainings and cold starts take these seconds, by number of workers. 0 is the bare worker.

    `error` is the relative error of the trainings.
    """
    results = scaling_results()
    for result in results:
        assert result.spec.workers is not None
        count = 0 if result.spec.workers.strategy == "none" else result.spec.workers.count
        result.summary.cold_start_seconds = Interval(value=start[count])
        if count in seconds:
            result.projection = Projection(
                steps=1000,
                build_and_fit_seconds=interval(seconds[count], error),
                total_seconds=interval(seconds[count], error),
            )
    return scaling_of(results, 0.02)


def test_the_fastest_training_counts_the_start_of_the_workers() -> None:
    start = {0: 5.0, 1: 5.0, 2: 6.0, 4: 60.0}
    assert trained({1: 100.0, 2: 60.0, 4: 45.0}, start).fastest == 4
    assert trained({1: 100.0, 2: 60.0, 4: 90.0}, start).fastest == 2
    assert trained({1: 100.0, 2: 60.0, 4: 63.0}, start, error=0.1).fastest is None
    assert trained({1: 100.0, 2: 60.0, 4: 57.0}, start, error=0.1).fastest is None


def test_the_cheapest_training_is_named_only_if_the_intervals_are_apart() -> None:
    def cheapest(one: float, two: float) -> int | None:
        results = scaling_results(steps={1: 0.104, 2: 0.06})
        for result, seconds in zip(results[1:3], (one, two), strict=True):
            result.price = Price(per_hour=3.6, currency="EUR")
            result.projection = Projection(
                steps=1000, build_and_fit_seconds=interval(seconds), total_seconds=interval(seconds)
            )
        return scaling_of(results, 0.02).cheapest

    assert cheapest(100.0, 60.0) == 1  # two machines for 60 s cost more than one for 100 s
    assert cheapest(100.0, 40.0) == 2
    assert cheapest(100.0, 51.0) is None


def test_one_size_that_was_measured_is_not_the_fastest() -> None:
    results = scaling_results(steps={1: 0.104, 2: 0.06})
    results[2].failure = Failure(kind="lost-worker", message="worker 1 was killed by SIGKILL")
    assert scaling_of(results, 0.02).fastest is None


def unsteady(two: list[float]) -> ScalingStudy:
    """Return a study of two workers whose steps take these seconds in three trials. The bare step takes 100 ms."""
    results = known(with_input=False)
    results[2] = measured("9", two, group="study", parent="study", loop="step", workers=results[2].spec.workers)
    for sample in results[2].samples:
        sample.facts = Facts(gradient_bytes=GRADIENTS)
    for result in results:
        result.summary.cold_start_seconds = Interval(value=5.0)
    return scaling_of(results, 0.02)


def test_a_training_is_said_to_become_faster_only_if_it_is_certain_that_the_steps_are() -> None:
    assert unsteady([0.07, 0.11, 0.08]).break_even_steps == {}
    assert unsteady([0.07, 0.071, 0.072]).break_even_steps == {"2": 0}


def test_no_speed_up_within_the_interval_exceeds_the_bounds() -> None:
    study = unsteady([0.069, 0.071, 0.073])
    assert study.amdahl_bound is not None
    assert study.serial_share is not None
    up = study.sizes[1].speed_up
    assert up is not None
    assert up.high is not None
    assert study.serial_share == pytest.approx(2 / up.high - 1)
    assert study.amdahl_bound == pytest.approx(1 / study.serial_share)
    reduction = next(part.seconds for part in study.sizes[1].parts if part.name == "all-reduce")
    assert reduction.low is not None
    assert study.bandwidth_bound == pytest.approx(0.1 / (2 * reduction.low))


@pytest.mark.parametrize(
    "two", [[0.04, 0.041, 0.042], [0.115, 0.12, 0.125], [0.07, 0.11, 0.08]], ids=["superlinear", "slower", "unsettled"]
)
def test_workers_without_a_certain_and_limited_speed_up_have_no_serial_share(two: list[float]) -> None:
    study = unsteady(two)
    assert (study.serial_share, study.amdahl_bound) == (None, None)


def test_a_training_must_be_long_enough_to_make_up_for_a_longer_start() -> None:
    study = trained({}, {0: 5.0, 1: 5.0, 2: 9.0, 4: 11.0})
    (_, two, four) = study.sizes
    assert two.speed_up is not None
    assert four.speed_up is not None
    assert two.speed_up.low is not None
    assert four.speed_up.low is not None
    saved = {"2": 0.1 * (1 - 1 / two.speed_up.low), "4": 0.1 * (1 - 1 / four.speed_up.low)}
    assert study.break_even_steps == {
        "2": pytest.approx(4 / saved["2"], rel=0.02), "4": pytest.approx(6 / saved["4"], rel=0.02)
    }  # fmt: skip


def test_workers_on_one_machine_cost_what_the_machine_costs() -> None:
    costs = []
    for cpus in (1, None):
        results = known()
        for result in results:
            assert result.spec.workers is not None
            workers = result.spec.workers.model_copy(update={"cpus": cpus})
            result.spec = result.spec.model_copy(update={"workers": workers})
            result.price = Price(per_hour=3600.0, currency="EUR")
            result.projection = Projection(
                steps=1000, build_and_fit_seconds=Interval(value=90.0), total_seconds=Interval(value=100.0)
            )
        costs.append(scaling_of(results, 0.02).sizes[1].cost)
    assert costs == [100.0, 200.0]
