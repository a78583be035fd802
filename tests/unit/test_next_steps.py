"""A command ends with the commands that use its results. A run that measured nothing ends with its error alone."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

import pytest
import typer
from synthetic import explanation, folder, ladder_results, measured, result, sweep_results
from synthetic_scaling import scaling_results

from bench.analyse.outcome import Outcome
from bench.analyse.pairing import pair, pair_groups
from bench.analyse.scaling import scaling_of
from bench.analyse.sweep import sweep_of
from bench.cli import app, bisect, compare, doctor, explain, gate, next_steps, run, scale, sweep
from bench.config.settings import RunSettings, load
from bench.errors import Interrupted
from bench.model.bisection import Bisection
from bench.model.check import Check
from bench.model.result import Summary, SweepMembership
from bench.model.sample import ProcessSample
from bench.model.spec import Env, Spec
from bench.study import recommend

pytestmark = pytest.mark.once


def test_a_run_is_followed_by_explain_compare_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = [measured("1", [0.1, 0.1]), measured("2", [0.2, 0.2], loop="step")]
    folder(tmp_path, *results)
    settings = load(output=str(tmp_path))
    assert run._show(Outcome.of(pair_groups(results)), None, settings, "./my program.py") == 0
    shown = capsys.readouterr().err.partition("next:\n")[2].splitlines()
    commands = [shlex.split(line.partition("  # ")[0]) for line in shown]
    assert commands == [
        ["devbench", "explain", "./my program.py"],
        ["devbench", "compare", str(tmp_path)],
        ["devbench", "report", str(tmp_path)],
    ]
    assert all(words[1] in app.COMMANDS for words in commands)


def test_explain_is_suggested_for_the_case_the_backend_and_the_parameters_of_the_first_result(tmp_path: Path) -> None:
    small = measured("1", [0.1], case="small", backend="cuda")
    (command, _), *_ = next_steps.after_measuring([small], "tabular", load(output=str(tmp_path), param={"batch": "64"}))
    assert command == "devbench explain tabular --case small --backend cuda --param batch=64"


def test_suggested_and_recommended_commands_run_in_the_same_environment_and_folder(tmp_path: Path) -> None:
    env = Env(name="old", python="/envs/old/bin/python", version="3.11.9", sha256="0")
    first = measured("1", [0.1], env=env)
    settings = load(output=str(tmp_path), env="old=/envs/old,new=/envs/new", workdir=str(tmp_path))
    (command, _), *_ = next_steps.after_measuring([first], "train.py", settings)
    place = f"--env old=/envs/old --workdir {tmp_path}"
    assert command == f"devbench explain train.py {place}"
    recommended = recommend._command("train.py", settings, first.spec, "--xla on")
    assert recommended == f"devbench run train.py --backend cpu {place} --xla on"


def test_a_suggested_command_names_an_environment_of_requirements_so_that_it_can_be_read(tmp_path: Path) -> None:
    name = "tensorflow==2.20.0 pandas>=2,<3"
    env = Env(name=name, python="/cache/bin/python", version="3.11.9", sha256="0")
    settings = load(output=str(tmp_path)).model_copy(update={"env": {name: "/cache"}})
    (command, _), *_ = next_steps.after_measuring([measured("1", [0.1], env=env)], "train.py", settings)
    words = shlex.split(command)
    assert load(env=words[words.index("--env") + 1]).env == {"tensorflow-2.20.0 pandas>-2-<3": "/cache"}


def test_after_a_slow_down_bisect_searches_for_the_commit_with_the_arguments_of_the_gate(tmp_path: Path) -> None:
    head = measured("1", [0.1], backend="cuda").spec
    settings = load(output=str(tmp_path), param={"batch": "64"}, threshold="10%")
    first, last = "1a2b3c4d5e6f", "6f5e4d3c2b1a"
    commits = [f"{first}0000", "0123456789ab", f"{last}0000"]
    bisect, explain_ = next_steps.after_slow_down(head, "train.py", commits, settings)
    assert bisect == (
        f"devbench bisect train.py --good {first} --bad {last} --backend cuda --threshold 10% --param batch=64",
        "which commit made it slower",
    )
    assert explain_ == ("devbench explain train.py --backend cuda --param batch=64", "where the time goes now")
    assert next_steps.after_slow_down(head, "train.py", [first, last], settings) == [explain_]
    assert next_steps.after_slow_down(head, "train.py", commits, settings, explained=True) == [bisect]


def test_a_gate_that_finds_a_slow_down_ends_with_the_next_steps_and_exit_code_5(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = [measured("1", [0.1, 0.1]), measured("2", [0.2, 0.2])]
    outcome = Outcome.of(pair([[result] for result in results]), 0.02)
    asked: list[Spec] = []

    def after_slow_down(spec: Spec) -> list[tuple[str, str]]:
        asked.append(spec)
        return [("devbench bisect", "which commit made it slower")]

    settings = load(output=str(tmp_path))
    assert gate._show(outcome, None, settings, "main", None, after_slow_down) == 5
    assert asked == [results[1].spec]
    shown = capsys.readouterr().err.partition("next:\n")[2].splitlines()
    assert [line.split()[1] for line in shown] == ["bisect", "report"]


def shown_after(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the commands below "next:" at the end of what a command wrote to stderr."""
    lines = capsys.readouterr().err.partition("next:\n")[2].splitlines()
    return [line.partition("  # ")[0].strip() for line in lines]


REPORTED: dict[str, Callable[[RunSettings], int]] = {
    "explain": lambda settings: explain._show(explanation(ladder_results()), None, settings),
    "sweep": lambda settings: sweep._show(sweep_of(sweep_results(), 0.02), None, settings),
    "scale": lambda settings: scale._show(scaling_of(scaling_results(), 0.02), None, settings),
    "bisect": lambda settings: bisect._show(Bisection(chain=["a", "b"], races=[], slow_downs=[]), None, settings),
}
"""What shows the result of each of these commands, which a report can show too."""


@pytest.mark.parametrize("command", REPORTED)
def test_a_study_is_followed_by_report_but_not_in_json(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert REPORTED[command](load(output=str(tmp_path))) == 0
    assert shown_after(capsys) == [f"devbench report {tmp_path}"]
    REPORTED[command](load(output=str(tmp_path), json=True))
    assert shown_after(capsys) == []


def test_a_comparison_of_a_folder_is_followed_by_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = [measured("1", [0.1, 0.1]), measured("2", [0.2, 0.2], loop="step")]
    folder(tmp_path, *results)
    compare.compare([str(tmp_path)], load())
    assert shown_after(capsys) == [f"devbench report {tmp_path}"]
    compare.compare([str(path) for path in sorted(tmp_path.glob("*.json"))], load())
    assert shown_after(capsys) == []  # a report is about a folder


@pytest.mark.parametrize(("status", "commands"), [("PASS", ["devbench run cifar --backend cpu"]), ("FAIL", [])])
def test_doctor_is_followed_by_a_first_run_if_nothing_failed(
    status: Literal["PASS", "FAIL"],
    commands: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    check = Check(status=status, name="disk", detail="80 GB free")
    monkeypatch.setattr(doctor, "_sections", lambda *_: iter([("machine", iter([check]))]))
    with suppress(typer.Exit):
        doctor.doctor(load(backend="cpu"))
    assert shown_after(capsys) == commands


def test_no_command_is_suggested_for_failed_results(tmp_path: Path) -> None:
    failed = result(status="failed", summary=Summary(), samples=[])
    assert next_steps.after_measuring([failed], "cifar", load(output=str(tmp_path))) == []


def test_an_interruption_before_anything_is_measured_shows_no_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started = ProcessSample(trial=1, start_position=0, pid=1, started=result().created, phases={"import": 3.0})
    empty = result(status="partial", summary=Summary(), samples=[started], projection=None, placement=None)
    settings = load(output=str(tmp_path))
    assert run._show(Outcome.of(pair_groups([empty])), Interrupted(signal.SIGINT, [empty]), settings, "cifar") == 130
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines()[-1] == "error: interrupted before the first result"
    assert explain._show(None, Interrupted(signal.SIGINT, [empty]), settings) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "error: interrupted before the first result"
    empty.sweep = SweepMembership(axes=["batch"])
    empty.spec = empty.spec.model_copy(update={"params": {"batch": 4}})
    assert sweep._show(sweep_of([empty], 0.02), Interrupted(signal.SIGINT, [empty]), settings) == 130
    assert capsys.readouterr().out == ""


def test_an_interruption_after_the_first_blocks_shows_what_they_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    partial = measured("1", [0.1, 0.1], status="partial")
    outcome = Outcome.of(pair_groups([partial]))
    run._show(outcome, Interrupted(signal.SIGINT, [partial]), load(output=str(tmp_path)), "cifar")
    assert "100.000 ± 0.000 ms" in capsys.readouterr().out


def test_an_explanation_that_is_interrupted_in_its_first_trial_says_so_and_keeps_the_blocks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    partial = measured("1", [0.1, 0.1], status="partial")
    assert explain._show(None, Interrupted(signal.SIGTERM, [partial]), load(output=str(tmp_path))) == 143
    assert capsys.readouterr().err.splitlines() == [
        "interrupted before a trial was complete, so there is nothing to explain yet",
        f"results: {tmp_path}",
        "error: interrupted: the results so far were kept and marked as partial",
    ]


def test_a_study_that_is_interrupted_in_its_first_trial_says_so_and_keeps_the_blocks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = load(output=str(tmp_path))
    partial = measured("1", [0.1, 0.1], status="partial")
    assert scale._show(None, Interrupted(signal.SIGTERM, [partial]), settings) == 143
    assert capsys.readouterr().err.splitlines() == [
        "interrupted before one worker alone was measured, so there is nothing to compare yet",
        f"results: {tmp_path}",
        "error: interrupted: the results so far were kept and marked as partial",
    ]
    scale._show(None, Interrupted(signal.SIGINT, [result("empty", status="partial", samples=[])]), settings)
    assert capsys.readouterr().err.splitlines()[-1] == "error: interrupted before the first result"
