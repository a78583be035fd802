"""User files of every shape are measured like built-ins. What a file cannot have is reported."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from background_runs import SECONDS, Runs, own, under_way

from bench.analyse.outcome import Outcome
from bench.analyse.pairing import pair_groups
from bench.model.facts import Epoch
from bench.render.terminal import table

pytestmark = pytest.mark.timeout(SECONDS)

ASKED = {
    "fit_dataset": (own("fit_dataset"), "--loop", "as-written,step"),
    "generator": (own("generator"),),
    "step_inputs": (own("step_inputs"),),
    "fit_arrays": (own("fit_arrays"), "--full"),
    "xla": (own("fit_arrays"), "--loop", "as-written,step,fused", "--xla", "on"),
    "left_over": (own("fit_dataset"), "--param", "batches=20,rest=5", "--loop", "as-written,step,fused"),
    "copies": (own("copies"), "--param", "max_bytes=64"),
    "float64": (own("step_inputs"), "--dtype", "float64"),
    "finite": (own("finite"), "--param", "steps=30"),
    "single": (own("finite"), "--param", "steps=1"),
    "step_data": (own("step_data"), "--full"),
    "several": (own("compile_options"), "--param", "steps_per_execution=4"),
    "eager": (own("compile_options"), "--param", "run_eagerly=true"),
    "uncompiled": (own("uncompiled"),),
    "warm": (own("module_function"),),
    "warm_xla": (own("module_function"), "--param", "compiler=xla", "--xla", "off"),
    "on_batch": (own("train_on_batch"),),
    "misplaced": (own("misplaced"),),
    "nothing": (own("no_tensorflow"),),
}
GOOD = [
    "fit_arrays",
    "fit_dataset",
    "generator",
    "finite",
    "step_inputs",
    "step_data",
    "several",
    "eager",
    "warm",
    "warm_xla",
    "on_batch",
]
ESSENTIAL = ("fit_dataset", "generator", "step_inputs")
"""One file for each kind of loop: Keras' `fit`, the program's own loop, and a step that devbench drives. They run
first."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    with under_way(tmp_path_factory.mktemp("userfiles"), ASKED) as found:
        yield found


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.essential] if name in ESSENTIAL else []) for name in GOOD]
)
def test_a_file_of_any_shape_is_measured_and_its_placement_verified(runs: Runs, name: str) -> None:
    found = runs.result(name)
    assert (runs[name].code, found.status, found.failure) == (0, "complete", None)
    assert found.spec.file is not None
    assert found.spec.data.kind == "own"
    assert found.summary.step_seconds is not None
    assert found.summary.step_seconds.value > 0
    assert found.placement is not None
    assert found.placement.verified
    assert found.placement.on_device > 0
    (sample,) = found.samples
    assert len(sample.series[0].blocks) >= 5
    assert sample.latency
    assert len(sample.first_losses) == 5
    assert all(math.isfinite(each) for each in sample.first_losses)


def test_losses_fall_while_a_training_is_measured(runs: Runs) -> None:
    for name in ("generator", "step_data"):
        answer = runs.result(name).samples[0].first_losses
        assert answer[-1] < answer[0]


def test_fit_is_observed_inside_the_authors_own_call(runs: Runs) -> None:
    phases = runs.result("fit_arrays").samples[0].phases
    assert {"data", "build", "prepare", "trace", "first_step", "epoch_end", "partial_batch"} <= phases.keys()
    assert runs.result("fit_arrays").samples[0].facts.epoch == Epoch(batches=127, remainder=8)


def test_short_epochs_show_how_often_iterators_wait_at_their_end(runs: Runs) -> None:
    result = runs.result("fit_arrays")
    ends = result.samples[0].facts.iterator_ends
    if (result.environment.tensorflow or "").startswith("2.10"):
        assert ends is None
        return
    assert ends
    assert all(each.age > 0 and each.gap >= 0 for each in ends)


def test_the_length_of_a_training_is_read_from_its_dataset(runs: Runs) -> None:
    projection = runs.result("fit_dataset").projection
    assert projection is not None
    assert projection.steps == 100


def test_the_partial_batch_of_a_dataset_is_a_phase_and_not_a_step(runs: Runs) -> None:
    for loop in ("as-written", "step", "fused"):
        found = runs.result("left_over", loop)
        assert found.status == "complete", found.failure
        assert found.samples[0].facts.epoch == Epoch(batches=20, remainder=5)
        assert found.projection is not None
        assert found.projection.steps == 21
    assert runs.result("left_over").samples[0].phases["partial_batch"] > 0
    stepped = runs.result("left_over", "step").samples[0]
    assert min(stepped.phases["partial_batch"], stepped.phases["partial_batch_again"]) > 0
    assert stepped.facts.traces == runs.result("fit_dataset", "step").samples[0].facts.traces


def test_batch_copy_and_input_wait_are_measured_for_the_programs_own_fit(runs: Runs) -> None:
    for name in ("fit_arrays", "fit_dataset"):
        assert {"batch_copy", "input_wait"} <= runs.result(name).samples[0].phases.keys(), name


def test_copies_are_timed_one_by_one_without_the_cost_of_reading(runs: Runs) -> None:
    found = runs.result("copies")
    assert (found.status, found.failure) == ("complete", None)
    wanted = {f"{way}/{size}" for way in ("h2d", "d2h") for size in (4, 16, 64)}
    assert wanted <= set(found.summary.series)
    assert {name for name, each in found.summary.series.items() if each.value > 0} >= {"floor/h2d"}
    floors = {series.name: series.floor for series in found.samples[0].series}
    assert (floors["h2d/64"], floors["d2h/16"]) == ("floor/h2d", "floor/d2h/16")


def test_inputs_are_float64_if_the_spec_says_so(runs: Runs) -> None:
    narrow, wide = runs.result("step_inputs"), runs.result("float64")
    assert narrow.samples[0].facts.bytes_per_step is not None
    assert wide.samples[0].facts.bytes_per_step == 2 * narrow.samples[0].facts.bytes_per_step


def test_a_whole_training_reports_its_loss_in_every_loop(runs: Runs) -> None:
    for name in ("fit_arrays", "step_data"):
        projection = runs.result(name).projection
        assert projection is not None
        assert projection.full_training is not None
        assert math.isfinite(projection.full_training.metrics["loss"]), name


def test_a_step_of_its_own_over_arrays_has_a_partial_batch_and_an_input_wait(runs: Runs) -> None:
    phases = runs.result("step_data").samples[0].phases
    assert {"batch_copy", "input_wait", "partial_batch", "partial_batch_again"} <= phases.keys()


def test_inputs_vary_and_their_operations_are_known_by_formula(runs: Runs) -> None:
    found = runs.result("step_inputs")
    assert len(set(found.samples[0].first_losses)) == 5
    assert found.samples[0].facts.flops_formula == found.samples[0].facts.flops_per_step == 2.0 * 64**2
    assert found.projection is None


def test_a_program_shorter_than_a_block_is_restarted_with_a_note(runs: Runs) -> None:
    found = runs.result("finite")
    assert any("has 30 steps" in note and "restarted" in note for note in found.notes)
    assert max(block.steps for block in found.samples[0].series[0].blocks) <= 29
    assert sum(block.steps for block in found.samples[0].series[0].blocks) > 60
    assert found.projection is not None
    assert found.projection.steps == 30


def test_a_program_of_one_step_is_refused_with_a_hint(runs: Runs) -> None:
    ended = runs["single"]
    assert ended.code == 2
    assert "one step" in ended.said()
    failure = runs.result("single").failure
    assert failure is not None
    assert (failure.kind, bool(failure.hint)) == ("workload", True)


def test_all_steps_of_a_call_are_counted(runs: Runs) -> None:
    several = runs.result("several")
    assert all(block.steps % 4 == 0 for block in several.samples[0].series[0].blocks)
    assert (several.samples[0].facts.steps_run or 1) % 4 == 0


def test_a_step_of_the_authors_own_loop_counts_once_even_if_keras_trains_in_it(runs: Runs) -> None:
    found = runs.result("on_batch")
    assert max(block.steps for block in found.samples[0].series[0].blocks) <= 29
    assert any("has 30 steps" in note for note in found.notes)


def test_the_result_says_whether_xla_compiled_the_step(runs: Runs) -> None:
    left_alone, contrary = runs.result("warm"), runs.result("warm_xla")
    assert left_alone.samples[0].facts.jit_compile is False
    assert left_alone.placement is not None
    assert left_alone.placement.xla_clusters == 0
    assert contrary.samples[0].facts.jit_compile is True
    assert contrary.placement is not None
    assert contrary.placement.xla_clusters > 0
    (warned,) = [each for each in contrary.warnings if each.key == "xla"]
    assert "--xla off had no effect" in warned.message
    assert "on, despite --xla off" in table.text(Outcome.of(pair_groups([contrary])), verbose=True)


def test_the_result_says_that_a_training_runs_eagerly(runs: Runs) -> None:
    assert runs.result("eager").samples[0].facts.run_eagerly is True
    assert runs.result("several").samples[0].facts.run_eagerly is False
    assert runs.result("eager").placement is not None


def test_a_model_that_is_not_compiled_is_refused_with_a_hint(runs: Runs) -> None:
    ended = runs["uncompiled"]
    assert ended.code == 2
    failure = runs.result("uncompiled").failure
    assert failure is not None
    assert failure.kind == "workload"
    assert "compiled" in failure.message
    assert "Compile the model" in failure.hint
    assert "Traceback" not in ended.out


def test_a_misplaced_operation_is_named_in_result_and_table(runs: Runs) -> None:
    found = runs.result("misplaced")
    assert found.placement is not None
    assert not found.placement.verified
    assert [(each.name, each.device) for each in found.placement.misplaced] == [("planted", "CPU:1")]
    assert "MatMul" in found.placement.misplaced[0].op
    assert found.placement.on_device > 0
    (warned,) = [each for each in found.warnings if each.key == "misplaced"]
    assert "'planted' on CPU:1" in warned.message
    assert warned.fix
    assert "planted" in table.text(Outcome.of(pair_groups([found])), verbose=True)
    assert "planted" in runs["misplaced"].out


def test_a_program_without_tensorflow_fails_the_placement_check(runs: Runs) -> None:
    ended = runs["nothing"]
    assert ended.code == 1
    found = runs.result("nothing")
    assert found.status == "failed"
    assert found.failure is not None
    assert found.failure.kind == "placement"
    assert found.placement is not None
    assert (found.placement.verified, found.placement.on_device) == (False, 0)
    assert found.samples[0].series[0].blocks
    assert "no operation was seen on CPU:0" in ended.said()


def test_xla_compiles_the_step_if_the_spec_says_so(runs: Runs) -> None:
    for loop in ("step", "fused"):
        found = runs.result("xla", loop)
        assert (found.status, found.spec.xla) == ("complete", True)
        assert found.samples[0].facts.jit_compile is True
        assert found.placement is not None
        assert found.placement.verified
        assert found.placement.xla_clusters > 0


def test_the_loop_as_written_records_whether_xla_was_on(runs: Runs) -> None:
    asked = runs.result("xla")
    assert (asked.spec.xla, asked.samples[0].facts.jit_compile) == (True, True)
    assert asked.placement is not None
    assert asked.placement.xla_clusters > 0
    left_alone = runs.result("fit_arrays")
    assert (left_alone.spec.xla, left_alone.samples[0].facts.jit_compile) == (None, False)
    assert left_alone.placement is not None
    assert left_alone.placement.xla_clusters == 0


def test_a_whole_training_is_shown_beside_its_projection_with_its_metrics(runs: Runs) -> None:
    found = runs.result("fit_arrays")
    projection = found.projection
    assert projection is not None
    assert projection.full_training is not None
    assert projection.steps == projection.full_training.steps == 3 * 128
    assert projection.full_training.total_seconds > projection.full_training.build_and_fit_seconds > 0
    assert len(projection.full_training.epoch_ends) == 3
    assert all(
        0 <= each < projection.full_training.build_and_fit_seconds for each in projection.full_training.epoch_ends
    )
    assert {"loss", "mae", "test_loss"} <= projection.full_training.metrics.keys()
    assert all(math.isfinite(each) for each in projection.full_training.metrics.values())
    assert len(found.samples) == 1
    shown = runs["fit_arrays"].out
    assert "measured training" in shown
    assert "test loss" in shown


def test_a_step_of_its_own_is_trained_for_all_its_steps(runs: Runs) -> None:
    projection = runs.result("step_data").projection
    assert projection is not None
    assert projection.full_training is not None
    assert projection.full_training.steps == projection.steps == 2 * 101
