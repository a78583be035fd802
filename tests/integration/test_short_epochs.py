"""Trainings of short epochs: what passes between epochs is not part of a step, and counts once in the projection."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from background_runs import SECONDS, Runs, measured_program, start_runs
from warm_workers import WarmServer

from bench.model.facts import Epoch
from bench.model.result import Projection, Result

pytestmark = pytest.mark.timeout(SECONDS)

PAUSE = 0.5
PROGRAM = measured_program("short_epochs")
COMMANDS = {
    "whole": (PROGRAM, "--loop", "as-written,fit,step", "--full"),
    "xla": (PROGRAM, "--param", "xla=true,pause=0", "--full"),
    "xla_long": (PROGRAM, "--param", "xla=true,source=dataset,rows=1000009,batch=128"),
    "seldom_validated": (PROGRAM, "--param", "epochs=9,frequency=3,rows=400000,pause=0"),
    "generator": (PROGRAM, "--param", "source=generator,rows=400000"),
    "stopped": (PROGRAM, "--param", "epochs=10,stop_after=2,pause=0", "--full"),
    "one_step": (PROGRAM, "--param", "rows=20,batch=32,epochs=300,pause=0", "--loop", "as-written,fit,step"),
    "long": (measured_program("fit_arrays"), "--param", "rows=200000"),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, warm_server: WarmServer | None) -> Iterator[Runs]:
    with start_runs(tmp_path_factory.mktemp("short-epochs"), COMMANDS, lambda name: warm_server) as started:
        yield started


def projection_of(result: Result) -> Projection:
    assert result.projection is not None
    return result.projection


def test_the_end_of_an_epoch_is_not_part_of_a_step(runs: Runs) -> None:
    (sample,) = runs.result("whole").samples
    blocks = [*sample.series[0].warmup, *sample.series[0].blocks]
    assert sum(block.epoch_end_seconds for block in blocks) > 3 * PAUSE
    assert max(block.step_seconds for block in blocks) < PAUSE
    assert sample.phases["epoch_end"] >= PAUSE
    assert sample.phases["first_epoch_end"] >= PAUSE
    assert max(sample.latency) < PAUSE


def test_throughput_over_whole_epochs_is_shown_where_their_ends_take_long(runs: Runs) -> None:
    summary = runs.result("whole").summary
    assert summary.examples_per_second is not None
    assert summary.epoch_examples_per_second is not None
    assert summary.epoch_examples_per_second < 120 / PAUSE < summary.examples_per_second
    assert "in whole epochs" in runs["whole"].out


def test_epochs_and_steps_are_those_of_the_observed_fit(runs: Runs) -> None:
    result = runs.result("whole")
    assert result.samples[0].facts.epoch == Epoch(batches=7, remainder=8)
    assert projection_of(result).steps == 6 * 8  # not 6 * 10, the batches of all rows


def test_a_projection_contains_the_end_of_each_epoch_once(runs: Runs) -> None:
    projection = projection_of(runs.result("whole"))
    assert projection.full_training is not None
    assert projection.full_training.steps == projection.steps
    assert projection.planned_steps == projection.steps
    ends = 6 * PAUSE
    assert ends < projection.build_and_fit_seconds.value
    assert projection.full_training.build_and_fit_seconds > ends
    assert -0.5 < (projection.build_and_fit_error or 0) < 1  # it was four times as long


def test_all_loops_compute_the_same_losses_although_epochs_are_shorter_than_the_check(runs: Runs) -> None:
    for name in ("whole", "one_step"):
        loops = {loop: runs.result(name, loop) for loop in ("fit", "step")}
        assert [result.failure for result in loops.values()] == [None, None]
        fitted, stepped = (result.samples[0].first_losses for result in loops.values())
        assert bool(fitted) == bool(stepped)
        assert fitted or name == "one_step"  # an epoch of one step has losses with Keras 2 only
        compared = min(len(fitted), len(stepped))
        assert stepped[:compared] == pytest.approx(fitted[:compared], rel=1e-3)


def test_a_compilation_for_the_partial_batch_is_not_part_of_a_step(runs: Runs) -> None:
    (sample,) = runs.result("xla").samples
    assert sample.facts.jit_compile is True
    assert sample.phases["partial_batch"] > 3 * sample.phases["partial_batch_again"]
    steps = [block.step_seconds for block in (*sample.series[0].warmup, *sample.series[0].blocks)]
    assert max(steps) < sample.phases["partial_batch"]


def test_a_projection_contains_the_compilation_for_the_partial_batch_once(runs: Runs) -> None:
    result = runs.result("xla")
    projection = projection_of(result)
    assert projection.build_and_fit_seconds.value > result.samples[0].phases["partial_batch"]
    assert -0.5 < (projection.build_and_fit_error or 0) < 1


def test_a_compilation_for_the_partial_batch_of_a_long_epoch_is_timed_on_a_short_one(runs: Runs) -> None:
    (sample,) = runs.result("xla_long").samples
    assert sample.facts.epoch == Epoch(batches=7812, remainder=73)
    assert sample.facts.ended_epochs is None
    assert sample.phases["partial_batch"] > 3 * sample.phases["partial_batch_again"]


def test_a_validation_is_timed_by_itself_although_most_epochs_have_none(runs: Runs) -> None:
    (sample,) = runs.result("seldom_validated").samples
    assert sample.facts.ended_epochs is None
    assert sample.facts.validated_epochs == pytest.approx(1 / 3)
    assert min(sample.phases["first_validation"], sample.phases["validation"]) > sample.phases["epoch_end"]


def test_the_end_of_an_epoch_is_timed_if_a_generator_has_no_end(runs: Runs) -> None:
    (sample,) = runs.result("generator").samples
    assert sample.facts.epoch == Epoch(batches=25000, remainder=0)
    assert sample.phases["epoch_end"] >= 0
    assert sample.facts.iterator_ends in (None, [])  # one iterator serves all epochs
    assert not sample.notes


def test_a_training_that_stops_by_itself_is_projected_and_measured_for_the_same_steps(runs: Runs) -> None:
    result = runs.result("stopped")
    projection = projection_of(result)
    assert projection.full_training is not None
    assert projection.steps == projection.full_training.steps == 2 * 8
    assert projection.planned_steps == projection.full_training.planned_steps == 10 * 8
    assert result.samples[0].facts.stopped_after == 2 * 8
    assert "stopped by itself after 16 of 80 steps" in runs["stopped"].text()


def test_an_epoch_of_one_step_has_a_step_and_an_end(runs: Runs) -> None:
    result = runs.result("one_step")
    (sample,) = result.samples
    assert sample.facts.epoch == Epoch(batches=0, remainder=16)
    assert projection_of(result).steps == 300
    assert sample.phases["epoch_end"] > 0
    assert "partial_batch" not in sample.phases


def test_the_end_of_a_long_epoch_is_measured_on_short_ones(runs: Runs) -> None:
    result = runs.result("long")
    (sample,) = result.samples
    assert sample.facts.ended_epochs is None
    assert {"first_epoch_end", "epoch_end", "epoch_start"} <= sample.phases.keys()
    if (result.environment.tensorflow or "").startswith("2.10"):
        assert sample.facts.iterator_ends is None
    else:
        assert sample.facts.iterator_ends
        assert all(end.age > 0 and end.gap >= 0 for end in sample.facts.iterator_ends)
