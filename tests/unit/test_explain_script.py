"""Which loops a script has in an explanation, once its first trial has shown what it trains."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic import measured

from bench import registry
from bench.cli import next_steps
from bench.config.settings import RunSettings, load
from bench.model.recognition import Recognition, StepKind, StepSource
from bench.model.result import Result
from bench.model.spec import LOOPS, Script
from bench.session.starting import may_fork
from bench.study.explain_levels import levels_of, with_script
from bench.study.plan import groups

pytestmark = pytest.mark.once


def trial(kind: StepKind, obstacle: str | None = None, others: int = 0) -> Result:
    """Return the first trial of a script whose steps are of a kind."""
    first = measured("1", [0.1], script=Script(arguments=("--epochs", "2")))
    source = StepSource(kind=kind, name="fit", file="train.py", line=3, token="", steps=90)
    first.recognition = Recognition(chosen=source, others=[source] * others, ended=True, seconds=1.0)
    first.samples[0].facts.replay_obstacle = obstacle
    return first


def missing(first: Result, folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return the levels of a script, and why others are missing."""
    path = folder / "train.py"
    path.write_text("print(1)\n")
    program = groups([path], RunSettings())[0].planned[0]
    levels, reasons = levels_of(program, with_script(registry.resolve(path), first), compiled=False)
    return [level.spec.loop for level in levels], {str(loop): reason for loop, reason in reasons.items()}


def test_a_script_that_calls_fit_has_the_levels_of_a_workload(tmp_path: Path) -> None:
    assert missing(trial("fit"), tmp_path) == (list(LOOPS), {})


def test_a_script_without_a_fit_that_can_be_replayed_has_only_its_own_loop(tmp_path: Path) -> None:
    for first, reason in (
        (trial("fit", "fit gets a class_weight"), "fit gets a class_weight"),
        (trial("updates", "the step runs eagerly"), "the step runs eagerly"),
        (trial("train-on-batch"), "devbench cannot run the call of train_on_batch outside the script"),
    ):
        levels, reasons = missing(first, tmp_path)
        assert levels == ["as-written"]
        assert reasons == dict.fromkeys(LOOPS[1:], f"not applicable, because {reason} (fit in train.py, line 3)")


def test_a_script_whose_step_is_one_function_has_the_levels_below_its_input(tmp_path: Path) -> None:
    levels, reasons = missing(trial("updates"), tmp_path)
    assert levels == ["as-written", "host-batches", "resident", "fused"]
    assert reasons["step"] == "not applicable, because the script's input cannot be read outside its loop"


@pytest.mark.parametrize("kind", ["fit", "updates"])
def test_an_explanation_is_suggested_for_a_script(kind: StepKind, tmp_path: Path) -> None:
    (command, _), *_ = next_steps.after_measuring([trial(kind)], "train.py", load(output=str(tmp_path)))
    assert command == "devbench explain train.py -- --epochs 2"


def test_an_explanation_of_a_module_names_it_as_python_does(tmp_path: Path) -> None:
    first = trial("fit")
    first.spec = first.spec.model_copy(update={"script": Script(module="train")})
    (command, _), *_ = next_steps.after_measuring([first], "-m train", load(output=str(tmp_path)))
    assert command == "devbench explain -m train"


@pytest.mark.needs("linux")
def test_workers_of_a_script_are_forked_unless_it_changes_variables_before_it_imports_tensorflow() -> None:
    first = trial("fit")
    assert first.recognition is not None
    assert may_fork(first)
    first.recognition.variables = ["TF_ENABLE_ONEDNN_OPTS"]
    assert not may_fork(first)
    first.recognition = None  # before its steps are known
    assert not may_fork(first)
