"""The command line: output, exit codes and errors, and that it starts without heavy packages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest
from synthetic import killed, result
from typer.testing import CliRunner

import bench
from bench import api, backends, registry
from bench.analyse.outcome import Outcome
from bench.analyse.pairing import pair_groups
from bench.cli import doctor, run
from bench.cli.app import COMMANDS, app
from bench.cli.options import describe
from bench.config.notation import option
from bench.config.settings import RunSettings
from bench.errors import DevbenchError, Interrupted
from bench.model.check import Check
from bench.model.failure import Failure
from bench.model.result import Result, Summary
from bench.publish.recorder import Recorder
from bench.render.text import entry
from bench.study import budget, sweep

ROOT = Path(bench.__file__).parent.parent


def devbench(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run devbench as a user does, without settings from the environment."""
    environment = {name: value for name, value in os.environ.items() if not name.upper().startswith("DEVBENCH_")}
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=cwd,
        env={**environment, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **environ},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def document(process: subprocess.CompletedProcess[str]) -> Any:
    """Return the only document on stdout."""
    return json.loads(process.stdout)


@cache
def help_of(*words: str) -> str:
    return CliRunner().invoke(app, [*words, "--help"]).output


def test_without_arguments_devbench_shows_its_help_and_succeeds(tmp_path: Path) -> None:
    process = devbench(cwd=tmp_path)
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout == devbench("--help", cwd=tmp_path).stdout
    for name, (_, line) in COMMANDS.items():
        assert f"  {name}" in process.stdout
        assert line in process.stdout


def test_the_version_option_shows_the_version_of_the_package() -> None:
    assert CliRunner().invoke(app, ["--version"]).output == f"devbench {bench.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_has_the_summary_of_each_commands_help(name: str) -> None:
    help_text = " ".join(help_of(name).split())
    assert COMMANDS[name][1].rstrip(".") in help_text


@pytest.mark.parametrize("name", RunSettings.model_fields)
def test_run_has_every_setting_as_an_option_with_its_variable_default_and_description(name: str) -> None:
    help_text = " ".join(help_of("run").split())
    field = RunSettings.model_fields[name]
    assert f" {option(name)} " in help_text
    # The help may break a line at a hyphen.
    text = describe(field, RunSettings.variable(name))
    assert "".join(text.split()) in "".join(help_text.split())
    if name == "target_error":
        assert "Default: 3%. [env: DEVBENCH_TARGET_ERROR]" in help_text
    assert help_text.count("default") == 0, "only the description states the default"


def test_help_fits_into_80_columns() -> None:
    for words in ([], *([name] for name in COMMANDS)):
        assert [line for line in help_of(*words).splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("words", [["rnu"], ["run", "--backed", "cpu", "cifar"], ["run"]])
def test_a_usage_error_exits_with_2_and_writes_only_to_stderr(words: list[str], tmp_path: Path) -> None:
    process = devbench(*words, cwd=tmp_path)
    assert (process.returncode, process.stdout) == (2, "")
    assert "Error:" in process.stderr


def test_a_misspelt_command_gets_the_nearest_command_as_a_hint(tmp_path: Path) -> None:
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
def test_an_error_of_the_user_is_a_message_with_a_hint_on_stderr_and_exits_with_2(
    words: list[str], message: str, hint: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    process = devbench("run", *words, cwd=tmp_path)
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr.startswith(f"error: {message}")
    assert hint in process.stderr
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize("source", ["option", "variable"])
def test_an_error_with_json_is_one_document_with_the_same_exit_code(source: str, tmp_path: Path) -> None:
    arguments, environment = (["--json"], {}) if source == "option" else ([], {"DEVBENCH_JSON": "on"})
    process = devbench("run", "cifar", "--threads", "none", *arguments, cwd=tmp_path, **environment)
    assert process.returncode == 2
    assert document(process) == {
        "error": {"message": "invalid value 'none' for --threads", "hint": "Use a whole number.", "exit_code": 2}
    }


def test_an_unknown_key_in_a_settings_file_is_an_error_with_the_file_and_the_key(tmp_path: Path) -> None:
    (tmp_path / "devbench.toml").write_text("bakend = 'cpu'\n", encoding="utf-8")
    process = devbench("run", "cifar", cwd=tmp_path)
    assert process.returncode == 2
    assert "unknown key 'bakend' in devbench.toml" in process.stderr
    assert "Did you mean backend?" in process.stderr


def test_a_misspelt_variable_gives_a_warning(tmp_path: Path) -> None:
    process = devbench("run", "cifer", cwd=tmp_path, DEVBENCH_BACKEN="cuda")
    assert "warning: DEVBENCH_BACKEN is not a devbench variable" in process.stderr


def test_an_internal_error_is_one_sentence_that_says_how_to_get_the_traceback(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "from bench import api\ndef run(*a, **k): raise RuntimeError('planted')\napi.run = run\n", encoding="utf-8"
    )
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    process = devbench("run", "cifar", cwd=tmp_path, PYTHONPATH=path)
    assert (process.returncode, process.stdout) == (1, "")
    assert "internal error of devbench: RuntimeError: planted" in process.stderr
    assert "DEVBENCH_TRACEBACK=1" in process.stderr
    assert "Traceback" not in process.stderr
    with_traceback = devbench("run", "cifar", cwd=tmp_path, PYTHONPATH=path, DEVBENCH_TRACEBACK="1")
    assert "Traceback" in with_traceback.stderr
    assert with_traceback.returncode == 1


HEAVY = ("tensorflow", "keras", "numpy", "scipy", "psutil")


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import bench.cli.app", (*HEAVY, "rich", "pydantic", "pydantic_settings")),
        ("import bench.cli.list", (*HEAVY, "rich", "pydantic")),
        ("import bench.cli.list as l; [l.workload(n) for n in l.registry.names()]", (*HEAVY, "pydantic")),
        ("import bench.cli.list as l; [l.backend(n) for n in l.backends.names()]", (*HEAVY, "pydantic")),
        ("import bench.cli.doctor, bench.cli.run, bench.render.terminal.table, bench.store.files", HEAVY[:2]),
    ],
)
def test_a_command_loads_only_what_it_needs(statement: str, absent: tuple[str, ...], tmp_path: Path) -> None:
    code = f"{statement}\nimport sys\nprint(sorted(set({absent!r}) & set(sys.modules)))"
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (process.stdout, process.returncode) == ("[]\n", 0), process.stderr


@pytest.mark.needs("posix")
@pytest.mark.parametrize("words", [["list"], ["list", "--json"], ["--help"]])
def test_a_full_disk_of_the_output_is_an_error_of_the_user(words: list[str], tmp_path: Path) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        command = [sys.executable, "-m", "bench", *words]
        process = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False)
    assert process.returncode == 2, process.stderr
    assert process.stderr.startswith("error: cannot write the output: No space left on device\n")
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize("proxy", ["::::", "http://[::1", "gopher://x", "http://"])
def test_an_invalid_proxy_is_an_error_of_the_user(proxy: str, tmp_path: Path) -> None:
    environ = {"http_proxy": proxy, "no_proxy": ""}
    process = devbench("push", str(tmp_path), "--hub", "http://hub.example:1", cwd=tmp_path, **environ)
    assert (process.returncode, process.stderr.splitlines()[0]) == (2, "error: invalid value for http_proxy")


def test_list_shows_every_workload_and_backend_within_80_columns(tmp_path: Path) -> None:
    process = devbench("list", cwd=tmp_path)
    assert (process.returncode, process.stderr) == (0, "")
    for name in (*registry.names(), *backends.names()):
        assert f"\n  {name}" in process.stdout
    assert [line for line in process.stdout.splitlines() if len(line) > 80] == []


def test_list_with_json_gives_the_loops_and_backends_that_apply_and_the_reasons_for_the_others(tmp_path: Path) -> None:
    listing = document(devbench("list", "--json", cwd=tmp_path))
    workloads = {workload["name"]: workload for workload in listing["workloads"]}
    assert list(workloads) == registry.names()
    assert {backend["name"] for backend in listing["backends"]} == set(backends.names())
    assert "as-written" in workloads["cifar"]["loops"]
    assert workloads["cifar"]["articles"][0].startswith("Exploring CPU vs GPU Speed in AI Training")
    assert workloads["tabular"]["cases"] == ["small", "large"]
    assert "cpu" in workloads["transfer"]["not_on"]
    for workload in workloads.values():
        assert workload["summary"]
        assert all(workload["not_applicable"].values())
    assert {type(backend["installed"]) for backend in listing["backends"]} == {bool}


def test_list_of_a_workload_shows_each_parameter_with_its_meaning_default_and_range(tmp_path: Path) -> None:
    process = devbench("list", "cifar", cwd=tmp_path)
    assert (process.returncode, process.stderr) == (0, "")
    text = " ".join(process.stdout.split())
    assert "--param batch=32" in text
    assert "hidden1 units of the first dense layer (default: 3000; a whole number from 1 to 1,000,000)" in text
    (tmp_path / "mine.py").write_text(
        "from pydantic import BaseModel\nclass Params(BaseModel):\n    rows: int\ndef step(p): ...\n", encoding="utf-8"
    )
    parameter = document(devbench("list", "./mine.py", "--json", cwd=tmp_path))["workload"]["params"]["rows"]
    assert (parameter["required"], parameter["default"], parameter["allowed"]) == (True, None, "a whole number")
    failure = devbench("run", "cifar", "--param", "batches=1", cwd=tmp_path)
    assert "`devbench list cifar` shows all of them" in failure.stderr


def test_list_of_a_file_shows_the_loops_of_functions_that_it_imports(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text("def step(): ...\ndef inputs(): ...\nCASES = {'one': {}}\n")
    (tmp_path / "mine.py").write_text("from parts import CASES, inputs, step\n")
    listed = document(devbench("list", "./mine.py", "--json", cwd=tmp_path))["workload"]
    assert set(listed["loops"]) == {"as-written", "step", "host-batches", "resident", "fused"}
    assert listed["cases"] == ["one"]
    assert (listed["script"], listed["reason"]) == (False, "it defines `step` in line 1")
    (tmp_path / "helper.py").write_text("def step(x, y): ...\n")
    failure = devbench("list", "./helper.py", cwd=tmp_path)
    assert "`step` has an argument `x`, which devbench does not pass" in failure.stderr
    assert "To run the file as a script: devbench run -m helper" in failure.stderr


def test_list_of_a_file_says_that_it_is_a_script_or_a_notebook(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("model = build()\nmodel.fit(x, y)\n", encoding="utf-8")
    text = " ".join(devbench("list", "train.py", cwd=tmp_path).stdout.split())
    assert "train.py is a script: it defines none of the functions" in text
    assert "Run it: devbench run train.py" in text
    (tmp_path / "helper.py").write_text("def model(): ...\n\nmodel().fit(x, y)\n", encoding="utf-8")
    assert (
        "helper.py is a script: it calls `fit` itself, in line 3." in devbench("list", "helper.py", cwd=tmp_path).stdout
    )
    listed = document(devbench("list", "train.py", "--json", cwd=tmp_path))["workload"]
    assert (listed["script"], listed["loops"]) == (True, ["as-written"])
    python = {"language_info": {"name": "python"}}
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x = 1")], metadata=python)
    nbformat.write(notebook, tmp_path / "train.ipynb")
    text = " ".join(devbench("list", "train.ipynb", cwd=tmp_path).stdout.split())
    assert "train.ipynb is a notebook, which runs as a script" in text


def test_list_follows_the_json_variable(tmp_path: Path) -> None:
    assert document(devbench("list", cwd=tmp_path, DEVBENCH_JSON="1"))["workloads"]


@pytest.mark.parametrize("words", [("run", "cifar", "--fast"), ("compare",), ("--fast",), ("lst",)])
def test_a_usage_error_with_json_is_one_document(words: tuple[str, ...], tmp_path: Path) -> None:
    process = devbench(*words, cwd=tmp_path, DEVBENCH_JSON="1")
    error = document(process)["error"]
    assert (process.returncode, error["exit_code"], bool(error["message"])) == (2, 2, True)
    assert error["message"].split(".")[0] in process.stderr


def test_doctor_without_a_backend_checks_all_backends_and_a_missing_device_is_not_a_failure(tmp_path: Path) -> None:
    process = devbench("doctor", "--json", cwd=tmp_path)
    report = document(process)
    assert set(report) == {"machine", *backends.names()}
    failed = [part for part, checks in report.items() for check in checks if check["status"] == "FAIL"]
    assert set(failed) <= {"machine"}
    assert process.returncode == (1 if failed else 0)
    assert [
        check
        for checks in report.values()
        for check in checks
        if check["status"] in ("WARN", "FAIL") and not check["fix"]
    ] == []


@pytest.mark.needs("no-nvidia-gpu")
def test_doctor_of_a_backend_without_its_device_exits_with_3_and_shows_a_fix(tmp_path: Path) -> None:
    process = devbench("doctor", "--backend", "cuda", cwd=tmp_path)
    assert process.returncode == 3
    assert "FAIL" in process.stdout
    assert "→ " in process.stdout
    assert [line for line in process.stdout.splitlines() if len(line) > 80] == []


def test_doctor_of_an_unknown_backend_is_an_error_with_the_nearest_name(tmp_path: Path) -> None:
    process = devbench("doctor", "--backend", "cudda", cwd=tmp_path)
    assert (process.returncode, process.stdout) == (2, "")
    assert "Did you mean cuda?" in process.stderr


def test_doctor_exits_with_1_if_another_check_fails_and_with_0_on_warnings() -> None:
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
def test_the_exit_code_of_run_follows_from_the_kinds_of_failures(kinds: list[str], code: int) -> None:
    assert run.exit_code([result(), *map(failed, kinds)]) == code


def finish(monkeypatch: pytest.MonkeyPatch, outcome: list[Result] | DevbenchError, *words: str) -> Any:
    """Run a command whose measurement is replaced by this outcome."""

    def measured(*_: object, **__: object) -> Outcome:
        if isinstance(outcome, DevbenchError):
            raise outcome
        return Outcome.of(pair_groups(outcome), 0.02)

    monkeypatch.setattr(api, "run", measured)
    monkeypatch.setattr(sys, "argv", ["devbench", *words])
    return CliRunner().invoke(app, list(words))


def test_run_shows_the_other_results_if_one_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    command = finish(
        monkeypatch, [result("a"), result("b", loop="fit", status="failed", failure=killed())], "run", "cifar"
    )
    assert command.exit_code == 1
    assert "18.40 ± 0.37 ms" in command.stdout
    assert "killed by SIGKILL" in command.stdout


def test_run_with_json_prints_one_document_with_the_complete_results(monkeypatch: pytest.MonkeyPatch) -> None:
    results = [result("a"), result("b", loop="fit", status="failed", failure=killed())]
    results[0].samples[0].first_losses = [float("nan")]
    command = finish(monkeypatch, results, "run", "cifar", "--json")
    document = json.loads(command.stdout, parse_constant=pytest.fail)
    assert command.exit_code == 1
    assert list(document) == ["results", "comparisons", "matrices"]
    assert [Result.model_validate(fields).id for fields in document["results"]] == ["a", "b"]


def test_a_signal_in_the_last_wait_for_the_hub_keeps_the_outcome_and_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def measured(*_: Any, recorder: Recorder, **__: Any) -> Outcome:
        recorder.cut_short = 15
        return Outcome.of(pair_groups([result()]), 0.02)

    monkeypatch.setattr(api, "run", measured)
    command = CliRunner().invoke(app, ["run", "cifar"])
    assert (command.exit_code, "18.40 ± 0.37 ms" in command.stdout) == (143, True)


@pytest.mark.parametrize("signum", [2, 15])
def test_an_interrupted_run_shows_its_partial_results_and_exits_with_128_plus_the_signal(
    signum: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    partial = [result(status="partial")]
    interruption = Interrupted(signum, partial, Outcome.of(pair_groups(partial)))
    command = finish(monkeypatch, interruption, "run", "cifar")
    assert command.exit_code == 128 + signum
    assert "18.40 ± 0.37 ms" in command.stdout
    assert "error: interrupted" in command.stderr
    document = json.loads(finish(monkeypatch, interruption, "run", "cifar", "--json").stdout)
    assert [result["status"] for result in document["results"]] == ["partial"]
    assert document["error"]["exit_code"] == 128 + signum


def test_an_entry_wraps_beside_its_label_or_below_a_long_one() -> None:
    assert entry("a", "one two three", 2, 6, 12) == "  a   one\n      two\n      three"
    assert entry("a longer one", "two", 2, 6, 12) == "  a longer one\n      two"


@pytest.mark.parametrize(("command", "seconds"), [("sweep", sweep.SECONDS), ("explain", budget.LIMIT)])
def test_the_help_of_a_command_names_its_own_time_limit(command: str, seconds: float) -> None:
    text = " ".join(CliRunner().invoke(app, [command, "--help"]).stdout.split())
    (limit,) = re.findall(r"--max-time TIME Time limit of [^.]*\. Default: (\d+)m\.", text)
    assert int(limit) * 60 == seconds
