"""The command line: what it shows, where it writes, how it ends, and that it starts without the heavy packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from synthetic import killed, result
from typer.testing import CliRunner

import bench
from bench import api, backends, registry
from bench.analyse.outcome import Outcome
from bench.cli import doctor, run
from bench.cli.app import COMMANDS, app
from bench.cli.options import describe
from bench.config.forms import option
from bench.config.settings import RunSettings
from bench.errors import DevbenchError, Interrupted
from bench.model.check import Check
from bench.model.result import Failure, Result, Summary
from bench.render.text import entry

ROOT = Path(bench.__file__).parent.parent


def devbench(*words: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Runs the program as a user does, without settings from outside."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith("DEVBENCH_")}
    return subprocess.run(
        [sys.executable, "-m", "bench", *words],
        cwd=cwd,
        env={**kept, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **environ},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def document(done: subprocess.CompletedProcess[str]) -> Any:
    """The one document on stdout."""
    return json.loads(done.stdout)


@cache
def help_of(*words: str) -> str:
    return CliRunner().invoke(app, [*words, "--help"]).output


def test_alone_it_shows_its_help_and_is_content(tmp_path: Path) -> None:
    done = devbench(cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == devbench("--help", cwd=tmp_path).stdout
    for name, (_, line) in COMMANDS.items():
        assert f"  {name}" in done.stdout
        assert line in done.stdout


def test_the_version_is_the_packages() -> None:
    assert CliRunner().invoke(app, ["--version"]).output == f"devbench {bench.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_line_in_the_table_is_the_beginning_of_its_help(name: str) -> None:
    shown = " ".join(help_of(name).split())
    assert COMMANDS[name][1].rstrip(".") in shown


@pytest.mark.parametrize("name", RunSettings.model_fields)
def test_every_setting_is_an_option_of_run_with_its_variable_default_and_description(name: str) -> None:
    shown = " ".join(help_of("run").split())
    field = RunSettings.model_fields[name]
    assert f" {option(name)} " in shown
    # A terminal's lines may break a word at its hyphen.
    text = describe(field, RunSettings.variable(name))
    assert "".join(text.split()) in "".join(shown.split())
    if name == "target_error":
        assert "Default: 3%. [env: DEVBENCH_TARGET_ERROR]" in shown
    assert shown.count("default") == 0, "the default stands in the text"


def test_help_keeps_to_80_columns() -> None:
    for words in ([], *([name] for name in COMMANDS)):
        assert [line for line in help_of(*words).splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("words", [["rnu"], ["run", "--backed", "cpu", "cifar"], ["run"]])
def test_bad_usage_is_exit_2_and_told_on_stderr(words: list[str], tmp_path: Path) -> None:
    done = devbench(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Error:" in done.stderr


def test_a_command_that_is_nearly_one_is_offered(tmp_path: Path) -> None:
    assert "Did you mean run?" in devbench("rnu", cwd=tmp_path).stderr


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["cifer"], "no workload named 'cifer'", "Did you mean cifar?"),
        (["cifar", "--xla", "maybe"], "invalid value 'maybe' for --xla", "Use auto, on or off."),
        (["cifar", "--config", "none.toml"], "no settings file at none.toml", "--config"),
        (["cifar", "--output", "file/results"], "cannot write results to file", "--output"),
    ],
)
def test_what_a_user_got_wrong_is_two_lines_on_stderr_and_exit_2(
    words: list[str], message: str, hint: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    done = devbench("run", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {message}")
    assert hint in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("how", ["option", "variable"])
def test_an_error_under_json_is_one_document_and_the_same_exit_code(how: str, tmp_path: Path) -> None:
    words, environ = (["--json"], {}) if how == "option" else ([], {"DEVBENCH_JSON": "on"})
    done = devbench("run", "cifar", "--threads", "none", *words, cwd=tmp_path, **environ)
    assert done.returncode == 2
    assert document(done) == {
        "error": {"message": "invalid value 'none' for --threads", "hint": "Use a whole number.", "exit_code": 2}
    }


def test_a_settings_file_with_an_unknown_key_is_told_by_file_and_key(tmp_path: Path) -> None:
    (tmp_path / "devbench.toml").write_text("bakend = 'cpu'\n", encoding="utf-8")
    done = devbench("run", "cifar", cwd=tmp_path)
    assert done.returncode == 2
    assert "unknown key 'bakend' in devbench.toml" in done.stderr
    assert "Did you mean backend?" in done.stderr


def test_a_variable_that_is_nearly_a_setting_is_warned_of(tmp_path: Path) -> None:
    done = devbench("run", "cifer", cwd=tmp_path, DEVBENCH_BACKEN="cuda")
    assert "warning: DEVBENCH_BACKEN is not a devbench variable" in done.stderr


def test_a_fault_of_our_own_is_one_sentence_and_says_how_to_see_where(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "from bench import api\ndef run(*a, **k): raise RuntimeError('planted')\napi.run = run\n", encoding="utf-8"
    )
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = devbench("run", "cifar", cwd=tmp_path, PYTHONPATH=path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "internal error of devbench: RuntimeError: planted" in done.stderr
    assert "DEVBENCH_TRACEBACK=1" in done.stderr
    assert "Traceback" not in done.stderr
    shown = devbench("run", "cifar", cwd=tmp_path, PYTHONPATH=path, DEVBENCH_TRACEBACK="1")
    assert "Traceback" in shown.stderr
    assert shown.returncode == 1


HEAVY = ("tensorflow", "keras", "numpy", "scipy", "psutil")


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import bench.cli.app", (*HEAVY, "rich", "pydantic", "pydantic_settings")),
        ("import bench.cli.list", (*HEAVY, "rich", "pydantic_settings")),
        ("import bench.cli.list as l; [l.workload(n) for n in l.registry.names()]", (*HEAVY, "pydantic_settings")),
        ("import bench.cli.doctor, bench.cli.run, bench.render.terminal.table, bench.store.files", HEAVY[:2]),
    ],
)
def test_a_command_loads_only_what_it_needs(statement: str, absent: tuple[str, ...], tmp_path: Path) -> None:
    code = f"{statement}\nimport sys\nprint(sorted(set({absent!r}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


def test_list_shows_every_workload_and_backend_within_80_columns(tmp_path: Path) -> None:
    done = devbench("list", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for name in (*registry.names(), *backends.names()):
        assert f"\n  {name}" in done.stdout
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []


def test_list_as_json_says_what_applies_and_why_the_rest_does_not(tmp_path: Path) -> None:
    told = document(devbench("list", "--json", cwd=tmp_path))
    workloads = {each["name"]: each for each in told["workloads"]}
    assert list(workloads) == registry.names()
    assert {each["name"] for each in told["backends"]} == set(backends.names())
    assert "as-written" in workloads["cifar"]["loops"]
    assert workloads["cifar"]["articles"][0].startswith("Exploring CPU vs GPU Speed in AI Training")
    assert workloads["tabular"]["cases"] == ["small", "large"]
    assert "cpu" in workloads["transfer"]["not_on"]
    for each in workloads.values():
        assert each["summary"]
        assert all(each["not_applicable"].values())
    assert {type(each["installed"]) for each in told["backends"]} == {bool}


def test_list_of_a_workload_shows_each_parameter_with_its_meaning_default_and_range(tmp_path: Path) -> None:
    done = devbench("list", "cifar", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    told = " ".join(done.stdout.split())
    assert "--param batch=32" in told
    assert "hidden1 units of the first dense layer (default: 3000; a whole number from 1 to 1,000,000)" in told
    (tmp_path / "mine.py").write_text(
        "from pydantic import BaseModel\nclass Params(BaseModel):\n    rows: int\ndef step(p): ...\n", encoding="utf-8"
    )
    found = document(devbench("list", "./mine.py", "--json", cwd=tmp_path))["workload"]["params"]["rows"]
    assert (found["required"], found["default"], found["allowed"]) == (True, None, "a whole number")
    refused = devbench("run", "cifar", "--param", "batches=1", cwd=tmp_path)
    assert "`devbench list cifar` shows all of them" in refused.stderr


def test_list_obeys_the_variable_for_json_as_every_command_does(tmp_path: Path) -> None:
    assert document(devbench("list", cwd=tmp_path, DEVBENCH_JSON="1"))["workloads"]


@pytest.mark.parametrize("words", [("run", "cifar", "--fast"), ("compare",), ("--fast",), ("lst",)])
def test_a_line_that_is_not_understood_is_one_document_under_json_too(words: tuple[str, ...], tmp_path: Path) -> None:
    done = devbench(*words, cwd=tmp_path, DEVBENCH_JSON="1")
    told = document(done)["error"]
    assert (done.returncode, told["exit_code"], bool(told["message"])) == (2, 2, True)
    assert told["message"].split(".")[0] in done.stderr


def test_doctor_without_a_backend_looks_at_all_and_an_absent_device_is_no_failure(tmp_path: Path) -> None:
    done = devbench("doctor", "--json", cwd=tmp_path)
    told = document(done)
    assert set(told) == {"machine", *backends.names()}
    failed = [part for part, checks in told.items() for check in checks if check["status"] == "FAIL"]
    assert set(failed) <= {"machine"}
    assert done.returncode == (1 if failed else 0)
    assert [c for checks in told.values() for c in checks if c["status"] in ("WARN", "FAIL") and not c["fix"]] == []


@pytest.mark.needs("no-nvidia-gpu")
def test_doctor_of_a_backend_whose_device_is_absent_is_exit_3_with_the_fix(tmp_path: Path) -> None:
    done = devbench("doctor", "--backend", "cuda", cwd=tmp_path)
    assert done.returncode == 3
    assert "FAIL" in done.stdout
    assert "→ " in done.stdout
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []


def test_doctor_knows_no_other_backends(tmp_path: Path) -> None:
    done = devbench("doctor", "--backend", "cudda", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Did you mean cuda?" in done.stderr


def test_doctor_ends_with_1_where_something_else_fails() -> None:
    failing = [Check("memory", "FAIL", "none", "buy some")]
    assert doctor.exit_code({"machine": failing, "cpu": []}, ("cpu",)) == 1
    assert doctor.exit_code({"machine": [Check("load", "WARN", "busy", "wait")]}, ()) == 0


def failed(kind: str) -> Result:
    return result(
        status="failed", failure=Failure.model_validate({"kind": kind, "message": "it did"}), summary=Summary()
    )


@pytest.mark.parametrize(
    ("kinds", "code"),
    [
        ([], 0),
        (["crashed"], 1),
        (["placement"], 1),
        (["workload"], 2),
        (["data", "workload"], 2),
        (["data", "hung"], 1),
        (["device"], 3),
        (["crashed", "device"], 3),
    ],
)
def test_the_exit_code_follows_from_how_results_failed(kinds: list[str], code: int) -> None:
    assert run.exit_code([result(), *map(failed, kinds)]) == code


def finish(monkeypatch: pytest.MonkeyPatch, outcome: list[Result] | DevbenchError, *words: str) -> Any:
    """Ends `devbench run` with this outcome of measuring, which has tests of its own."""

    def measured(*_: object, **__: object) -> Outcome:
        if isinstance(outcome, DevbenchError):
            raise outcome
        return Outcome.of(outcome, 0.02)

    monkeypatch.setattr(api, "run", measured)
    monkeypatch.setattr(sys, "argv", ["devbench", *words])
    return CliRunner().invoke(app, list(words))


def test_run_shows_what_was_measured_even_where_one_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    done = finish(
        monkeypatch, [result("a"), result("b", loop="fit", status="failed", failure=killed())], "run", "cifar"
    )
    assert done.exit_code == 1
    assert "18.40 ± 0.37 ms" in done.stdout
    assert "killed by SIGKILL" in done.stdout


def test_run_as_json_is_one_document_with_all_that_the_files_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [result("a"), result("b", loop="fit", status="failed", failure=killed())]
    both[0].samples[0].first_losses = [float("nan")]
    done = finish(monkeypatch, both, "run", "cifar", "--json")
    told = json.loads(done.stdout, parse_constant=pytest.fail)
    assert done.exit_code == 1
    assert list(told) == ["results", "comparisons", "matrices"]
    assert [Result.model_validate(each).id for each in told["results"]] == ["a", "b"]


@pytest.mark.parametrize("signum", [2, 15])
def test_an_interrupted_run_shows_what_was_kept_and_ends_as_shells_have_it(
    signum: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = Interrupted(signum, [result(status="partial")])
    done = finish(monkeypatch, stopped, "run", "cifar")
    assert done.exit_code == 128 + signum
    assert "18.40 ± 0.37 ms" in done.stdout
    assert "error: interrupted" in done.stderr
    told = json.loads(finish(monkeypatch, stopped, "run", "cifar", "--json").stdout)
    assert [each["status"] for each in told["results"]] == ["partial"]
    assert told["error"]["exit_code"] == 128 + signum


def test_an_entry_wraps_beside_its_label_or_below_a_long_one() -> None:
    assert entry("a", "one two three", 2, 6, 12) == "  a   one\n      two\n      three"
    assert entry("a longer one", "two", 2, 6, 12) == "  a longer one\n      two"
