"""Each script is recognized: what a step is, where it is, and exactly how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from scouting import failure, recognition, scout, servers_of_scripts, trial

from bench.analyse.explain.antipatterns import causes
from bench.machine import installed
from bench.model.causes import NEW_DATASET
from bench.model.recognition import StepKind
from bench.session.process import StartProcess, spawn
from bench.session.worker_servers import WorkerServers

PROGRAMS = Path(__file__).parent / "programs"
KERAS_2 = (installed.version("keras") or "").startswith("2.")


@pytest.fixture(autouse=True)
def in_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the scripts as their users would: in their folder."""
    monkeypatch.chdir(PROGRAMS)


class Expected(NamedTuple):
    """What must be recognized.

    Args:
        kind: what a step is.
        text: text of the line that makes the steps.
        steps: steps of the script.
        others: steps of its other loops.
        arguments: of the script.
    """

    kind: StepKind
    text: str
    steps: int
    others: tuple[int, ...] = ()
    arguments: tuple[str, ...] = ()


EXPECTED = {
    "fit_arrays": Expected("fit", ".fit(", 75),
    "fit_dataset": Expected("fit", ".fit(", 40),
    "fit_generator": Expected("fit", ".fit(", 60),
    "fit_sequence": Expected("fit", ".fit(", 60),
    "fit_custom_train_step": Expected("fit", ".fit(", 60),
    "fit_files": Expected("fit", ".fit(", 64),
    "fit_two_inputs": Expected("fit", ".fit(", 90),
    "fit_several": Expected("fit", "epochs=5", 50, (10,)),
    "fit_in_a_loop": Expected("fit", ".fit(", 60),
    "fit_single_batches": Expected("single-fit", "# each step", 40, (1,)),
    "fit_gan": Expected("single-fit", "# the last of a step", 30),
    "fit_steps_per_execution": Expected("fit", ".fit(", 100),
    "fit_steps_per_epoch": Expected("fit", ".fit(", 40 if KERAS_2 else 48),  # Keras 3 runs each call in full
    "fit_mirrored": Expected("fit", ".fit(", 30),
    "train_on_batch": Expected("train-on-batch", "train_on_batch(", 60),
    "train_on_batch_rest": Expected("train-on-batch", "full[", 50, (5,)),
    "train_on_batch_gan": Expected("train-on-batch", "combined.train_on_batch(", 40),
    "loop_eager": Expected("updates", "apply_gradients(", 60),
    **({} if KERAS_2 else {"loop_apply": Expected("updates", "optimizer.apply(", 60)}),
    "loop_new_optimizer": Expected("updates", "apply_gradients(", 60),
    "loop_persistent_tape": Expected("updates", "apply_gradients(", 60),
    "loop_folds": Expected("updates", "apply_gradients(", 90),
    "loop_eager_gan": Expected("updates", "apply_gradients(", 45),
    "loop_critic": Expected("updates", "    train_generator()", 30),
    "loop_function": Expected("updates", "        train_step(features", 80),
    "loop_function_gan": Expected("updates", "    train_step(tf.random", 50),
    "loop_many_steps": Expected("updates", "    train_epoch()", 120),
    "loop_phases": Expected("updates", "", 70, (40,)),
    "predict": Expected("predict", "model.predict(", 30),
    "evaluate": Expected("evaluate", "model.evaluate(", 60),
    "infer_steps_per_execution": Expected("predict", "model.predict(", 50, (40,)),
    "call_model": Expected("model", "model(data", 80),
    "call_function": Expected("function", "    infer(", 90),
    "session": Expected("session-training", "session.run([train", 65),
    "session_inference": Expected("session", "session.run(outputs", 70, (1,)),
    "keras_first": Expected("fit", ".fit(", 40),
    "environment": Expected("fit", ".fit(", 40, (), ("--epochs", "2")),
    "waits_for_input": Expected("fit", ".fit(", 30),
    "fit_vae": Expected("fit", ".fit(", 48),
    "fit_transfer": Expected("fit", "initial_epoch=4", 48, (24,)),
    "fit_two_outputs": Expected("fit", ".fit(", 50),
    "fit_from_generator": Expected("fit", ".fit(", 30),
    "fit_text": Expected("fit", ".fit(", 40),
    "loop_mirrored": Expected("updates", "train_step(inputs)", 60),
    "loop_accumulate": Expected("updates", "        update()", 40),
    "loop_accumulate_function": Expected("updates", "train(x[", 30),
    "loop_while": Expected("updates", "train(tf.constant(25))", 250),
    "loop_class": Expected("updates", "self.train_step(features, labels)", 80),
    "loop_reinforce": Expected("updates", "apply_gradients(", 40),
    "loop_wasteful": Expected("updates", "train_step(features)))", 200),
    "loop_nested_functions": Expected("updates", "train_ten(x, y)", 90, (1,)),
    "loop_concrete_function": Expected("updates", "    step(x, y)", 60),
    "loop_nested_traced": Expected("updates", "    train_step(x, y)", 60, (10,)),
    "loop_with_actor": Expected("updates", "    train_step(x, y)", 60),
    "loop_strategy_function": Expected("updates", "strategy.run(train_step", 60),
    "predict_threads": Expected("predict", "model.predict(", 30),
    "infer_saved_model": Expected("function", "infer(rows=rows)", 70),
    "loop_assign": Expected("gradients", "tape.gradient(", 60),
    "loop_assign_two": Expected("gradients", "move(second.weights, again", 50),
    "loop_assign_folds": Expected("gradients", "outer.gradient(", 90),
    "saliency": Expected("model", "model(rows, training=False)", 60, (10,)),
    "loop_minimize": Expected("updates", "optimizer.minimize(", 70),
    "evaluate_on_batch": Expected("evaluate", "model.test_on_batch(", 40),
    "serve": Expected("model", "model(rows)", 60),
    "session_growing": Expected("session-training", "session.run([train", 55),
    "train_on_batch_folds": Expected("train-on-batch", "train_on_batch(", 90),
    "loop_flag": Expected("updates", "training=training)", 80),
    "session_monitored": Expected("session-training", "session.run([train, loss])", 45),
}


EAGER, READ, RETRACING, DOUBLE = "eager execution", "per-step synchronization", "retracing", "float64"
CAUSES: dict[str, set[str]] = {
    "fit_in_a_loop": {RETRACING},
    "fit_single_batches": {NEW_DATASET},
    "fit_gan": {NEW_DATASET},
    "fit_mirrored": {RETRACING},
    "train_on_batch_rest": {DOUBLE},
    "train_on_batch_gan": {DOUBLE, READ},
    "loop_eager": {EAGER},
    "loop_apply": {EAGER},
    "loop_new_optimizer": {EAGER},
    "loop_persistent_tape": {EAGER, "persistent tapes"},
    "loop_folds": {EAGER},
    "loop_eager_gan": {EAGER},
    "loop_critic": {EAGER},
    "loop_function_gan": {EAGER},
    "loop_phases": {READ},
    "predict": {NEW_DATASET},
    "infer_steps_per_execution": {NEW_DATASET},
    "call_model": {EAGER},
    "loop_mirrored": {EAGER, RETRACING},
    "loop_reinforce": {EAGER, READ},
    "loop_wasteful": {READ},
    "loop_minimize": {EAGER},
    "loop_assign": {EAGER},
    "saliency": {EAGER},
    "loop_assign_two": {EAGER},
    "loop_assign_folds": {EAGER},
    "serve": {EAGER, READ},
}
"""What must be found in the steps of each script. Nothing is found in the others."""
CAUSES_OF_KERAS_2 = {
    **CAUSES,
    "fit_mirrored": set(),
    "train_on_batch_rest": set(),
    "train_on_batch_gan": {READ},
    "serve": {READ},
    "saliency": set(),
}

ESSENTIAL = ("fit_dataset", "loop_eager_gan", "loop_many_steps", "session")
"""Scripts that `make test` runs too."""
ONCE = ("fit_transfer", "fit_from_generator", "loop_class", "loop_reinforce", "waits_for_input", "environment")
"""Scripts that use nothing that differs between versions of TensorFlow and no other script uses."""

MARKS = {**dict.fromkeys(ESSENTIAL, pytest.mark.essential), **dict.fromkeys(ONCE, pytest.mark.once)}

FRESH = (*ESSENTIAL, "keras_first", "environment")
"""Scripts that import TensorFlow themselves. For the others, a server imported it before they start."""


@pytest.fixture(scope="module")
def servers() -> Iterator[WorkerServers | None]:
    """Return servers that fork the processes of scripts. None if this system has none."""
    with servers_of_scripts(PROGRAMS / "fit_arrays.py") as shared:
        yield shared


@pytest.fixture
def fork(servers: WorkerServers | None) -> StartProcess:
    """Return a function that forks the process of a script."""
    return servers.fork if servers else spawn


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in EXPECTED])
def test_the_steps_of_a_script_are_recognized_counted_and_measured(
    name: str, tmp_path: Path, servers: WorkerServers | None, fork: StartProcess
) -> None:
    expected = EXPECTED[name]
    program = PROGRAMS / f"{name}.py"
    scouted = scout(program, tmp_path, expected.arguments, start=spawn if name in FRESH else fork)
    found = recognition(scouted)
    assert found.ended
    assert (found.chosen.kind, found.chosen.steps) == (expected.kind, expected.steps)
    assert tuple(source.steps for source in found.others) == expected.others
    assert expected.text in (PROGRAMS / found.chosen.file).read_text().splitlines()[found.chosen.line - 1]
    assert found.total_steps == expected.steps
    if name in FRESH:
        result = trial(program, tmp_path, expected.arguments, spawn, None)
    else:
        result = trial(program, tmp_path, expected.arguments, fork, servers)
    assert recognition(result).chosen == found.chosen
    assert result.samples[0].series[0].blocks
    assert {"import", "build"} <= result.samples[0].phases.keys()
    assert (causes(result) or set()) == (CAUSES_OF_KERAS_2 if KERAS_2 else CAUSES).get(name, set())
    assert result.placement is not None
    assert (result.placement.requested_device, result.placement.verified) == ("CPU:0", True)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_step", "no training step found in no_step.py; it ended after"),
        ("fit_resumed", "1 call of fit was seen (fit_resumed.py, line 10), without a step"),
        ("no_tensorflow", "it did not import TensorFlow"),
        ("disables_eager", "it disabled eager execution, so only sessions are recognized"),
        ("raises", "NameError: name 'undefined_name' is not defined"),
        ("environment", "the following arguments are required: --epochs"),
    ],
)
def test_a_script_without_a_step_fails_with_the_reason(name: str, words: str, tmp_path: Path) -> None:
    failed = failure(scout(PROGRAMS / f"{name}.py", tmp_path))
    assert words in failed.message
    assert "devbench-" not in failed.message  # the path of a copy


@pytest.mark.timeout(300)
def test_a_loop_can_be_chosen_by_its_number(tmp_path: Path, fork: StartProcess) -> None:
    program = PROGRAMS / "fit_several.py"
    found = recognition(scout(program, tmp_path, watch=1, start=fork))
    assert (found.chosen.number, found.chosen.steps) == (1, 10)
    assert "has no loop number 5" in failure(scout(program, tmp_path, watch=5, start=fork)).message


@pytest.mark.timeout(300)
def test_a_script_that_waits_for_input_is_answered_and_explained(tmp_path: Path) -> None:
    result = scout(PROGRAMS / "waits_for_input.py", tmp_path)
    assert [note for note in result.notes if "asked for input in waits_for_input.py, line 6" in note]


@pytest.mark.once
@pytest.mark.timeout(300)
def test_a_script_that_shows_plots_opens_no_window_and_is_told_so(tmp_path: Path) -> None:
    result = scout(PROGRAMS / "shows_plots.py", tmp_path)
    assert recognition(result).chosen.steps == 30
    assert result.notes == [
        "The script chose matplotlib's backend TkAgg. devbench used Agg, which opens no windows.",
        "plt.show() in shows_plots.py, line 17 opened no window.",
    ]


@pytest.mark.timeout(300)
def test_variables_that_a_script_sets_for_the_import_of_tensorflow_are_recorded(tmp_path: Path) -> None:
    text = (PROGRAMS / "fit_arrays.py").read_text()
    harmless = "import os\nos.environ.update(TF_CPP_MIN_LOG_LEVEL='2', WANDB_MODE='offline')\n"
    relevant = "os.environ['OMP_NUM_THREADS'] = '1'\ndel os.environ['TF_ENABLE_ONEDNN_OPTS']\n"
    programs = {harmless: [], harmless + relevant: ["OMP_NUM_THREADS", "TF_ENABLE_ONEDNN_OPTS"]}
    for number, (before, names) in enumerate(programs.items()):
        program = tmp_path / f"sets{number}.py"
        program.write_text(before + text)
        assert recognition(scout(program, tmp_path)).variables == names
