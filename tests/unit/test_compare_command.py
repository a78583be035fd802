"""`devbench compare`: its output and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from synthetic import MOMENT
from test_analyse_compare import NOISE, measured
from typer.testing import CliRunner, Result

import bench
from bench.analyse.outcome import Outcome
from bench.analyse.pairing import pair_groups
from bench.cli import run
from bench.cli.app import app
from bench.config.settings import load
from bench.errors import NotComparable, UsageError
from bench.model.failure import Failure
from bench.model.result import SCHEMA_VERSION
from bench.store import files


def devbench(*words: str) -> Result:
    return CliRunner().invoke(app, ["compare", *words])


def saved(folder: Path, steps: list[float], name: str, **changes: Any) -> str:
    folder.mkdir(exist_ok=True)
    return str(files.write(measured(steps, name=name, **changes), folder))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    """Return the paths of two interleaved results: of the CPU, and of a GPU that is slower and starts later."""
    cpu = saved(tmp_path, [0.01 * n for n in NOISE], "20260102T030405000-aaaaaaaa")
    gpu = measured([0.013 * n for n in NOISE], 20.0, "20260102T030405000-bbbbbbbb", backend="cuda")
    return cpu, str(files.write(gpu, tmp_path))


def test_python_and_the_command_make_the_same_comparisons(pair: tuple[str, str], tmp_path: Path) -> None:
    comparisons = json.loads(devbench(*pair, "--json").stdout)["comparisons"]
    for arguments in (pair, [files.read(Path(path)) for path in pair], [tmp_path], [files.results(tmp_path)]):
        outcome = bench.compare(arguments, threshold="2%")
        assert [json.loads(comparison.model_dump_json()) for comparison in outcome.comparisons] == comparisons
        assert (outcome.matrices, outcome.alone, outcome.unchecked) == ([], [], [])


def test_python_names_the_reason_if_nothing_can_be_compared(pair: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match="there is only one result"):
        bench.compare(pair[:1])


def test_comparing_does_not_load_what_measures() -> None:
    code = (
        "import sys, bench.cli.compare; from bench import compare;"
        "print(*{'.'.join(name.split('.')[:2]) for name in sys.modules if name.startswith('bench.')})"
    )
    process = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = set(process.stdout.split())
    assert "bench.analyse" in loaded
    assert loaded & {"bench.session", "bench.study", "bench.publish", "bench.worker", "bench.registry"} == set()


def test_a_comparison_prints_the_verdict_and_the_phases(pair: tuple[str, str]) -> None:
    command = devbench(*pair)
    assert command.exit_code == 0
    verdict, phases = command.stdout.split("\n\n")
    assert " ".join(verdict.split()) == (
        "slower: cifar on cuda, as-written takes 1.3000 times [1.3000, 1.3000] as long as cifar on cpu, as-written per "
        "step (6 trials). From a cold start, cifar on cpu, as-written is ahead from the first step. Whole training of "
        "15,630 steps from a cold start: 3 min 43 s for cifar on cuda, as-written; 2 min 39 s for cifar on cpu, "
        "as-written."
    )
    assert [line.split() for line in phases.splitlines()[1:3]] == [
        ["import", "2.51", "s", "19.5", "s", "+17.0", "s", "[+17.0", "s,", "+17.0", "s]"],
        ["first", "step", "500", "ms", "500", "ms", "not", "measurable"],
    ]
    assert max(map(len, command.stdout.splitlines())) <= 80


def test_fail_on_slower_exits_with_5(pair: tuple[str, str]) -> None:
    assert devbench(*pair, "--fail-on", "slower").exit_code == 5
    assert devbench(*reversed(pair), "--fail-on", "slower").exit_code == 0
    assert devbench(*pair, "--fail-on", "slower", "--threshold", "50%").exit_code == 0


def test_fail_on_slower_fails_without_a_verdict(tmp_path: Path) -> None:
    cpu = saved(tmp_path, [0.01, 0.011], "20260102T030405000-aaaaaaaa")
    invalid = saved(tmp_path, [-1.0, -1.0], "20260102T030405000-bbbbbbbb", backend="cuda")
    command = devbench(cpu, invalid, "--fail-on", "slower")
    assert command.exit_code == 1
    assert "may be slower: cifar on cuda" in command.stderr
    assert devbench(cpu, invalid).exit_code == 0


@pytest.mark.parametrize("failed", ["base", "other"])
def test_fail_on_slower_fails_if_a_result_failed_after_some_processes(failed: str, tmp_path: Path) -> None:
    failure = {"status": "failed", "failure": Failure(kind="memory", message="memory ran out in process 4")}
    base, other = (
        saved(tmp_path, [0.01 * n for n in NOISE], f"20260102T030405000-{name:a>8}", **changes)
        for name, changes in (
            ("base", failure if failed == "base" else {}),
            ("other", {"loop": "fit"} | (failure if failed == "other" else {})),
        )
    )
    command = devbench(base, other, "--fail-on", "slower")
    assert command.exit_code == 1
    assert "memory ran out in process 4" in command.stderr
    assert "failed: memory ran out in process 4." in " ".join(devbench(base, other).stdout.split())


def test_python_names_the_failure_of_results_that_cannot_be_compared(tmp_path: Path) -> None:
    for day in (1, 2):
        failure = Failure(kind="nan", message="the loss is NaN")
        name = f"2026010{day}T030405000-aaaaaaaa"
        saved(tmp_path, [0.01], name, group=name, status="failed", failure=failure, loop=("fit", "step")[day - 1])
    with pytest.raises(NotComparable) as caught:
        bench.compare([tmp_path])
    assert "the loss is NaN" in caught.value.hint


def test_a_result_that_failed_after_some_trials_has_no_verdict(tmp_path: Path) -> None:
    failure = Failure(kind="memory", message="OOM when allocating")
    base = saved(tmp_path, [0.02, 0.0201, 0.0199], "20260102T030405000-aaaaaaaa")
    name = "20260102T030405000-bbbbbbbb"
    broken = saved(tmp_path, [0.02, 0.0201, 0.0199], name, backend="cuda", status="failed", failure=failure)
    shown = devbench(base, broken, "--fail-on", "slower")
    assert shown.exit_code == 1, shown.stderr
    assert "failed: OOM when allocating." in " ".join(shown.stdout.split())
    assert "as long as" not in shown.stdout
    assert "From a cold start" not in shown.stdout
    assert "failed, so there is no verdict" in " ".join(shown.stderr.split())


def folders(tmp_path: Path, wrong: Mapping[str, str]) -> list[str]:
    """Return two folders with a result per loop. `wrong` has the failures in the second folder, by loop."""
    for name in ("old", "new"):
        for place, loop in enumerate(("as-written", "fit")):
            changes: dict[str, Any] = {"loop": loop}
            if name == "new" and loop in wrong:
                changes |= {"status": "failed", "failure": Failure(kind="nan", message=wrong[loop])}
            saved(tmp_path / name, [0.01 * n for n in NOISE], f"2026010{1 + place}T030405000-{name:a>8}", **changes)
    return [str(tmp_path / "old"), str(tmp_path / "new")]


def test_fail_on_slower_fails_on_an_unfair_comparison_of_two_folders(tmp_path: Path) -> None:
    arguments = folders(tmp_path, {"fit": "its loss is not a number"})
    command = devbench(*arguments)
    assert command.exit_code == 0
    assert "not comparable: cifar on cpu, fit" in command.stdout
    command = devbench(*arguments, "--fail-on", "slower")
    assert command.exit_code == 4
    assert "may be slower: cifar on cpu, fit" in command.stderr
    assert devbench(*arguments, "--fail-on", "slower", "--force").exit_code != 4


LARGE: dict[str, Any] = {"backend": "cuda", "params": {"batch": 64, "epochs": 2}}


@pytest.mark.parametrize("changes", [None, {**LARGE, "dtype": "float64", "loop": "fit"}])
def test_fail_on_slower_fails_on_a_result_without_a_fair_counterpart(
    tmp_path: Path, changes: dict[str, Any] | None
) -> None:
    step = [0.01 * n for n in NOISE]
    old, new = tmp_path / "old", tmp_path / "new"
    saved(old, step, "20260101T030405000-aaaaaaaa")
    saved(old, step, "20260101T030405000-bbbbbbbb", **LARGE)
    saved(new, step, "20260102T030405000-cccccccc")
    if changes is not None:
        saved(new, step, "20260102T030405000-dddddddd", **changes)
    assert devbench(str(old), str(new)).exit_code == 0
    command = devbench(str(old), str(new), "--fail-on", "slower")
    assert command.exit_code == 4
    assert "cifar on cuda, as-written (20260101T030405000-bbbbbbbb)" in command.stderr
    assert ("cifar on cuda, fit (20260102T030405000-dddddddd)" in command.stderr) is (changes is not None)
    assert "aaaaaaaa" not in command.stderr


def test_a_single_result_need_not_have_counterparts_for_a_whole_folder(tmp_path: Path) -> None:
    step = [0.01 * n for n in NOISE]
    for name, changes in (("aaaaaaaa", {}), ("bbbbbbbb", LARGE)):
        saved(tmp_path / "old", step, f"20260101T030405000-{name}", **changes)
    new = saved(tmp_path / "new", step, "20260102T030405000-cccccccc")
    assert devbench(str(tmp_path / "old"), new, "--fail-on", "slower").exit_code == 0
    unfair = {"backend": "cuda", "dtype": "float64", "loop": "fit"}
    other = saved(tmp_path / "new", step, "20260102T030405000-dddddddd", **unfair)
    assert devbench(str(tmp_path / "old"), other, "--fail-on", "slower").exit_code == 4


def test_a_workload_that_only_the_second_folder_has_passes_and_is_listed(tmp_path: Path) -> None:
    arguments = folders(tmp_path, {})
    saved(Path(arguments[1]), [0.01], "20260109T030405000-cccccccc", workload="mnist")
    command = devbench(*arguments, "--fail-on", "slower")
    assert command.exit_code == 0
    assert "no result to compare with: mnist on cpu, as-written (20260109T030405000-cccccccc)" in command.stdout
    assert devbench(*reversed(arguments), "--fail-on", "slower").exit_code == 4  # the workload is missing now


def test_folders_without_a_fair_comparison_are_refused_with_the_reason(tmp_path: Path) -> None:
    command = devbench(*folders(tmp_path, {"fit": "not a number", "as-written": "not a number"}))
    assert command.exit_code == 4
    assert "cannot be compared with" in command.stderr
    assert "--force" in command.stderr


def test_the_json_document_contains_the_error_of_the_gate(pair: tuple[str, str]) -> None:
    command = devbench(*pair, "--fail-on", "slower", "--json")
    assert command.exit_code == 5
    document = json.loads(command.stdout)
    assert document["error"]["exit_code"] == 5
    assert [comparison["verdict"] for comparison in document["comparisons"]] == ["slower"]


def test_stdout_contains_only_the_json_document(pair: tuple[str, str]) -> None:
    (comparison,) = json.loads(devbench(*pair, "--json").stdout)["comparisons"]
    assert (comparison["axis"], comparison["verdict"], comparison["paired"]) == ("backend", "slower", True)
    assert comparison["ratio"]["value"] == pytest.approx(1.3)


def test_an_unfair_comparison_exits_with_4_unless_forced(pair: tuple[str, str], tmp_path: Path) -> None:
    other = saved(tmp_path, [0.01, 0.011], "20260102T030405000-cccccccc", workload="mnist", group="h")
    command = devbench(pair[0], other)
    assert command.exit_code == 4
    assert "they are different programs" in command.stderr
    assert "--force" in command.stderr
    forced_command = devbench(pair[0], other, "--force")
    assert forced_command.exit_code == 0
    assert "unfair: workload: cifar vs. mnist" in forced_command.stdout


def test_three_results_make_a_matrix(pair: tuple[str, str], tmp_path: Path) -> None:
    third = saved(tmp_path, [0.005 * n for n in NOISE], "20260102T030405000-dddddddd", backend="directml")
    command = devbench(*pair, third)
    assert "B  cifar on cuda, as-written" in command.stdout
    row = next(line for line in command.stdout.splitlines() if line.startswith("  C   "))
    assert row.split() == ["C", "0.5", "faster", "0.385", "faster", "–"]


def test_the_json_document_contains_the_matrix(pair: tuple[str, str], tmp_path: Path) -> None:
    third = saved(tmp_path, [0.005 * n for n in NOISE], "20260102T030405000-dddddddd", backend="directml")
    for arguments in ((*pair, third), (str(tmp_path),)):  # named results; an interleaved group
        (matrix,) = json.loads(devbench(*arguments, "--json").stdout)["matrices"]
        assert [result["label"] for result in matrix["results"]] == [
            f"cifar on {backend}, as-written" for backend in ("cpu", "cuda", "directml")
        ]
        cells = [
            [cell and (round(cell["ratio"]["value"], 3), cell["verdict"]) for cell in row] for row in matrix["rows"]
        ]
        assert cells == [
            [None, (0.769, "faster"), (2.0, "slower")],
            [(1.3, "slower"), None, (2.6, "slower")],
            [(0.5, "faster"), (0.385, "faster"), None],
        ]
        first = matrix["rows"][0][1]
        assert first["ratio"]["low"] < first["ratio"]["value"] < first["ratio"]["high"] < 1
        assert first["unit"] == "step"
    assert json.loads(devbench(*pair, "--json").stdout)["matrices"] == []


def test_the_json_document_of_a_run_contains_a_matrix_without_failed_results(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    group = [measured([0.01 * size * n for n in NOISE], name=str(size), params={"batch": size}) for size in (1, 2, 4)]
    failed = measured([], name="8", backend="cuda", status="failed", failure=Failure(kind="error", message="it broke"))
    assert (
        run._show(Outcome.of(pair_groups([*group, failed]), 0.02), None, load(json=True, output=str(tmp_path)), "cifar")
        == 1
    )
    (matrix,) = json.loads(capsys.readouterr().out)["matrices"]
    assert [result["id"] for result in matrix["results"]] == ["1", "2", "4"]
    assert [[cell and round(cell["ratio"]["value"], 3) for cell in row] for row in matrix["rows"]] == [
        [None, 0.5, 0.25],
        [2.0, None, 0.5],
        [4.0, 2.0, None],
    ]


def test_a_matrix_of_named_results_contains_forced_comparisons(pair: tuple[str, str], tmp_path: Path) -> None:
    third = saved(tmp_path, [0.005 * n for n in NOISE], "20260102T030405000-dddddddd", workload="mnist")
    command = devbench(*pair, third, "--force")
    row = next(line for line in command.stdout.splitlines() if line.startswith("  C   "))
    assert row.split() == ["C", "0.5", "faster", "0.385", "faster", "–"]
    assert devbench(*pair).stdout.startswith("slower: ")


def test_a_matrix_wider_than_a_line_continues_below(tmp_path: Path) -> None:
    names = [
        saved(tmp_path, [0.01 * batch * n for n in NOISE], f"20260102T030405000-{batch:08}", params={"batch": batch})
        for batch in range(1, 8)
    ]
    lines = devbench(*names).stdout.splitlines()
    headers = [line.split() for line in lines if line.startswith("     ") and line.split()[0] in "AE"]
    assert headers == [["A", "B", "C", "D"], ["E", "F", "G"]]
    assert [line.split()[1:] for line in lines if line.startswith("  G  ")][2][-1] == "–"
    assert max(map(len, lines[: lines.index("")])) <= 80


def test_results_of_different_groups_make_a_matrix(tmp_path: Path) -> None:
    for place, backend in enumerate(("cpu", "cuda", "directml")):
        name = f"20260102T030405000-{place:08}"
        saved(tmp_path, [0.01 * n for n in NOISE], name, backend=backend, group=f"g{place}")
    assert "C  cifar on directml, as-written" in devbench(str(tmp_path)).stdout


def test_a_folder_has_the_baseline_of_the_run_whatever_the_ids(tmp_path: Path) -> None:
    created = {"20260102T030405000-ffffffff": "as-written", "20260102T030405000-00000000": "fused"}
    results = [
        measured([step * n for n in NOISE], name=name, loop=loop, created=MOMENT + timedelta(microseconds=position))
        for position, ((name, loop), step) in enumerate(zip(created.items(), (0.02, 0.001), strict=True))
    ]
    for document in results:
        files.write(document, tmp_path)
    outcome = Outcome.of(pair_groups(results))
    (of_run,), (of_folder,) = outcome.comparisons, bench.compare([tmp_path]).comparisons
    assert (of_folder.base.id, of_folder.verdict) == (of_run.base.id, of_run.verdict) == (results[0].id, "faster")


def test_a_folder_is_compared_within_itself(pair: tuple[str, str], tmp_path: Path) -> None:
    command = devbench(str(tmp_path))
    assert command.stdout.startswith("slower: cifar on cuda")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("aaaaaaaa", "nowhere"), 2, "'nowhere' is not a file, a folder or the id of a result in"),
        (("20260102", "aaaaaaaa"), 2, "2 results in"),
        (("aaaaaaaa", "missing/a.json"), 2, "cannot read missing/a.json"),
        (("aaaaaaaa",), 2, "there is only one result"),
    ],
)
def test_an_argument_that_names_no_result_is_an_error(
    pair: tuple[str, str], tmp_path: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    command = devbench(*words, "--output", str(tmp_path))
    assert command.exit_code == code
    assert message in " ".join(command.stderr.split())


def test_a_damaged_document_and_one_of_another_version_have_their_own_errors(
    pair: tuple[str, str], tmp_path: Path
) -> None:
    text, version = Path(pair[0]).read_text(), f'"schema_version": {SCHEMA_VERSION}'
    wrong = {
        "newer": (text.replace(version, '"schema_version": 99', 1), "newer devbench (0.1.0, schema 99)"),
        "older": (text.replace(version, '"schema_version": 1', 1), "older devbench (0.1.0, schema 1)"),
        "cut": (text[: len(text) // 2], "not a complete JSON document"),
        "edited": (text.replace('"trial": 1', '"trial": "one"', 1), "not a valid result: samples.0.trial"),
    }
    for name, (content, message) in wrong.items():
        path = tmp_path / f"{name}.json"
        path.write_text(content)
        command = devbench(str(path), pair[1])
        assert command.exit_code == 2
        assert message in " ".join(command.stderr.split())


def test_an_empty_folder_is_an_error_that_names_devbench_run(tmp_path: Path) -> None:
    command = devbench(str(tmp_path))
    assert command.exit_code == 2
    assert "holds no result" in command.stderr
    assert "devbench run" in command.stderr


def test_a_single_trial_gives_no_verdict(tmp_path: Path) -> None:
    first = saved(tmp_path, [0.01], "20260102T030405000-aaaaaaaa")
    other = saved(tmp_path, [0.02], "20260102T030405000-bbbbbbbb", loop="fit", xla=False)
    command = devbench(first, other)
    assert command.exit_code == 0
    assert command.stdout.startswith("Too few trials for a verdict.")
