"""Programs of users in every form are measured like built-in ones. What a program cannot have is reported."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from background_runs import SECONDS, Runs, measured_program, start_runs
from warm_workers import WarmServer

from bench.analyse.outcome import Outcome
from bench.analyse.pairing import pair_groups
from bench.model.facts import Epoch
from bench.render.terminal import table

pytestmark = pytest.mark.timeout(SECONDS)

COMMANDS = {
    "fit_dataset": (measured_program("fit_dataset"), "--loop", "as-written,step"),
    "generator": (measured_program("generator"),),
    "step_inputs": (measured_program("step_inputs"),),
    "fit_arrays": (measured_program("fit_arrays"), "--full"),
    "xla": (measured_program("fit_arrays"), "--loop", "as-written,step,fused", "--xla", "on"),
    "partial_batch": (
        measured_program("fit_dataset"),
        "--param",
        "batches=20,rest=5",
        "--loop",
        "as-written,step,fused",
    ),
    "copies": (measured_program("copies"), "--param", "max_bytes=64"),
    "float64": (measured_program("step_inputs"), "--dtype", "float64"),
    "finite": (measured_program("finite"), "--param", "steps=30"),
    "one_step": (measured_program("finite"), "--param", "steps=1"),
    "step_data": (measured_program("step_data"), "--full"),
    "steps_per_execution": (measured_program("compile_options"), "--param", "steps_per_execution=4"),
    "eager": (measured_program("compile_options"), "--param", "run_eagerly=true"),
    "uncompiled": (measured_program("uncompiled"),),
    "module_function": (measured_program("module_function"),),
    "module_function_xla": (measured_program("module_function"), "--param", "compiler=xla", "--xla", "off"),
    "train_on_batch": (measured_program("train_on_batch"),),
    "misplaced": (measured_program("misplaced"),),
    "no_tensorflow": (measured_program("no_tensorflow"),),
}  # fmt: skip
COMPLETE = [
    "fit_arrays",
    "fit_dataset",
    "generator",
    "finite",
    "step_inputs",
    "step_data",
    "steps_per_execution",
    "eager",
    "module_function",
    "module_function_xla",
    "train_on_batch",
]
ESSENTIAL = ("fit_dataset", "generator", "step_inputs")
"""One program for each kind of loop: Keras' `fit`, its own loop, and a step that devbench drives. They run first."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, warm_server: WarmServer | None) -> Iterator[Runs]:
    with start_runs(tmp_path_factory.mktemp("programs"), COMMANDS, lambda name: warm_server) as started:
        yield started


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.essential] if name in ESSENTIAL else []) for name in COMPLETE]
)
def test_a_program_of_any_form_is_measured_and_its_placement_verified(runs: Runs, name: str) -> None:
    result = runs.result(name)
    assert (runs[name].code, result.status, result.failure) == (0, "complete", None)
    assert result.spec.file is not None
    assert result.spec.data.kind == "own"
    assert result.summary.step_seconds is not None
    assert result.summary.step_seconds.value > 0
    assert result.placement is not None
    assert result.placement.verified
    assert result.placement.on_device > 0
    (sample,) = result.samples
    assert len(sample.series[0].blocks) >= 5
    assert sample.latency
    assert len(sample.first_losses) == 5
    assert all(math.isfinite(loss) for loss in sample.first_losses)


def test_losses_fall_while_a_training_is_measured(runs: Runs) -> None:
    for name in ("generator", "step_data"):
        losses = runs.result(name).samples[0].first_losses
        assert losses[-1] < losses[0]


def test_a_call_of_fit_inside_the_program_is_observed(runs: Runs) -> None:
    phases = runs.result("fit_arrays").samples[0].phases
    assert {"data", "build", "prepare", "trace", "first_step", "epoch_end", "partial_batch"} <= phases.keys()
    assert runs.result("fit_arrays").samples[0].facts.epoch == Epoch(batches=127, remainder=8)


def test_the_length_of_a_training_is_read_from_its_dataset(runs: Runs) -> None:
    projection = runs.result("fit_dataset").projection
    assert projection is not None
    assert projection.steps == 100


def test_the_partial_batch_of_a_dataset_is_a_phase_and_not_a_step(runs: Runs) -> None:
    for loop in ("as-written", "step", "fused"):
        result = runs.result("partial_batch", loop)
        assert result.status == "complete", result.failure
        assert result.samples[0].facts.epoch == Epoch(batches=20, remainder=5)
        assert result.projection is not None
        assert result.projection.steps == 21
    assert runs.result("partial_batch").samples[0].phases["partial_batch"] > 0
    step_sample = runs.result("partial_batch", "step").samples[0]
    assert min(step_sample.phases["partial_batch"], step_sample.phases["partial_batch_again"]) > 0
    assert step_sample.facts.traces == runs.result("fit_dataset", "step").samples[0].facts.traces


def test_batch_copy_and_input_wait_are_measured_for_the_programs_own_fit(runs: Runs) -> None:
    for name in ("fit_arrays", "fit_dataset"):
        assert {"batch_copy", "input_wait"} <= runs.result(name).samples[0].phases.keys(), name


def test_copies_are_timed_one_by_one_without_the_cost_of_reading(runs: Runs) -> None:
    result = runs.result("copies")
    assert (result.status, result.failure) == ("complete", None)
    expected = {f"{direction}/{size}" for direction in ("h2d", "d2h") for size in (4, 16, 64)}
    assert expected <= set(result.summary.series)
    assert {name for name, interval in result.summary.series.items() if interval.value > 0} >= {"floor/h2d"}
    floors = {series.name: series.floor for series in result.samples[0].series}
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


def test_a_custom_step_over_arrays_has_a_partial_batch_and_an_input_wait(runs: Runs) -> None:
    phases = runs.result("step_data").samples[0].phases
    assert {"batch_copy", "input_wait", "partial_batch", "partial_batch_again"} <= phases.keys()


def test_inputs_vary_and_the_formula_gives_their_operations(runs: Runs) -> None:
    result = runs.result("step_inputs")
    assert len(set(result.samples[0].first_losses)) == 5
    assert result.samples[0].facts.flops_formula == result.samples[0].facts.flops_per_step == 2.0 * 64**2
    assert result.projection is None


def test_a_program_shorter_than_a_block_is_restarted_with_a_note(runs: Runs) -> None:
    result = runs.result("finite")
    assert any("has 30 steps" in note and "restarted" in note for note in result.notes)
    assert max(block.steps for block in result.samples[0].series[0].blocks) <= 29
    assert sum(block.steps for block in result.samples[0].series[0].blocks) > 60
    assert result.projection is not None
    assert result.projection.steps == 30


def test_a_program_of_one_step_is_refused_with_a_hint(runs: Runs) -> None:
    run = runs["one_step"]
    assert run.code == 2
    assert "one step" in run.text()
    failure = runs.result("one_step").failure
    assert failure is not None
    assert (failure.kind, bool(failure.hint)) == ("workload", True)


def test_all_steps_of_a_call_are_counted(runs: Runs) -> None:
    result = runs.result("steps_per_execution")
    assert all(block.steps % 4 == 0 for block in result.samples[0].series[0].blocks)
    assert (result.samples[0].facts.steps_run or 1) % 4 == 0


def test_a_step_of_the_programs_own_loop_counts_once_even_if_keras_trains_in_it(runs: Runs) -> None:
    result = runs.result("train_on_batch")
    assert max(block.steps for block in result.samples[0].series[0].blocks) <= 29
    assert any("has 30 steps" in note for note in result.notes)


def test_the_result_says_whether_xla_compiled_the_step(runs: Runs) -> None:
    default, overridden = runs.result("module_function"), runs.result("module_function_xla")
    assert default.samples[0].facts.jit_compile is False
    assert default.placement is not None
    assert default.placement.xla_clusters == 0
    assert overridden.samples[0].facts.jit_compile is True
    assert overridden.placement is not None
    assert overridden.placement.xla_clusters > 0
    (warning,) = [warning for warning in overridden.warnings if warning.key == "xla"]
    assert "--xla off had no effect" in warning.message
    assert "on, despite --xla off" in table.text(Outcome.of(pair_groups([overridden])), verbose=True)


def test_the_result_says_that_a_training_runs_eagerly(runs: Runs) -> None:
    assert runs.result("eager").samples[0].facts.run_eagerly is True
    assert runs.result("steps_per_execution").samples[0].facts.run_eagerly is False
    assert runs.result("eager").placement is not None


def test_a_model_that_is_not_compiled_is_refused_with_a_hint(runs: Runs) -> None:
    run = runs["uncompiled"]
    assert run.code == 2
    failure = runs.result("uncompiled").failure
    assert failure is not None
    assert failure.kind == "workload"
    assert "compiled" in failure.message
    assert "Compile the model" in failure.hint
    assert "Traceback" not in run.out


def test_a_misplaced_operation_is_named_in_result_and_table(runs: Runs) -> None:
    result = runs.result("misplaced")
    assert result.placement is not None
    assert not result.placement.verified
    assert [(operation.name, operation.device) for operation in result.placement.misplaced] == [("planted", "CPU:1")]
    assert "MatMul" in result.placement.misplaced[0].op
    assert result.placement.on_device > 0
    (warning,) = [warning for warning in result.warnings if warning.key == "misplaced"]
    assert "'planted' on CPU:1" in warning.message
    assert warning.fix
    assert "planted" in table.text(Outcome.of(pair_groups([result])), verbose=True)
    assert "planted" in runs["misplaced"].out


def test_a_program_without_tensorflow_fails_the_placement_check(runs: Runs) -> None:
    run = runs["no_tensorflow"]
    assert run.code == 1
    result = runs.result("no_tensorflow")
    assert result.status == "failed"
    assert result.failure is not None
    assert result.failure.kind == "placement"
    assert result.placement is not None
    assert (result.placement.verified, result.placement.on_device) == (False, 0)
    assert result.samples[0].series[0].blocks
    assert "no operation was seen on CPU:0" in run.text()


def test_xla_compiles_the_step_if_the_spec_says_so(runs: Runs) -> None:
    for loop in ("step", "fused"):
        result = runs.result("xla", loop)
        assert (result.status, result.spec.xla) == ("complete", True)
        assert result.samples[0].facts.jit_compile is True
        assert result.placement is not None
        assert result.placement.verified
        assert result.placement.xla_clusters > 0


def test_the_loop_as_written_records_whether_xla_was_on(runs: Runs) -> None:
    with_xla = runs.result("xla")
    assert (with_xla.spec.xla, with_xla.samples[0].facts.jit_compile) == (True, True)
    assert with_xla.placement is not None
    assert with_xla.placement.xla_clusters > 0
    default = runs.result("fit_arrays")
    assert (default.spec.xla, default.samples[0].facts.jit_compile) == (None, False)
    assert default.placement is not None
    assert default.placement.xla_clusters == 0


def test_a_whole_training_is_shown_beside_its_projection_with_its_metrics(runs: Runs) -> None:
    result = runs.result("fit_arrays")
    projection = result.projection
    assert projection is not None
    assert projection.full_training is not None
    assert projection.steps == projection.full_training.steps == 3 * 128
    assert projection.full_training.total_seconds > projection.full_training.build_and_fit_seconds > 0
    assert len(projection.full_training.epoch_ends) == 3
    fit_seconds = projection.full_training.build_and_fit_seconds
    assert all(0 <= end < fit_seconds for end in projection.full_training.epoch_ends)
    assert {"loss", "mae", "test_loss"} <= projection.full_training.metrics.keys()
    assert all(math.isfinite(value) for value in projection.full_training.metrics.values())
    assert len(result.samples) == 1
    output = runs["fit_arrays"].out
    assert "measured training" in output
    assert "test loss" in output


def test_a_whole_training_with_a_custom_step_runs_all_its_steps(runs: Runs) -> None:
    projection = runs.result("step_data").projection
    assert projection is not None
    assert projection.full_training is not None
    assert projection.full_training.steps == projection.steps == 2 * 101
