"""Workers that fail: the failure is reported with its kind, its line and a fix, and other workloads are measured.

All runs start once, three at a time, because those that hang take as long as the timeout.
"""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest
from devbench_process import BRIEF, FAULTY_PROGRAMS, CompletedRun, faulty_program, run_devbench, survivors
from warm_workers import WarmServer

from bench.model.failure import Failure
from bench.model.result import Result

PROGRAMS = {
    "hangs": ("hangs",),
    "hangs_while_loading": ("hangs_in_worker",),
    "crashes": ("segfault", "aborts", "killed", "raises"),
    "invalid_values": ("nan_loss", "nan_inside", "yields_text", "matmul"),
    "two_loops": ("fails_as_written", "broken_inputs"),
    "complete": ("prints_much", "swallows_exceptions"),
}
pytestmark = [pytest.mark.timeout(1500), pytest.mark.once]

TIMEOUT = ("--worker-timeout", "45s")
"""Longer than the import of TensorFlow on a busy machine."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, fresh_workers: WarmServer | None) -> dict[str, CompletedRun]:
    """All runs by name."""
    folder = tmp_path_factory.mktemp("failures")
    options = {
        "hangs": TIMEOUT,
        "hangs_while_loading": TIMEOUT,
        "two_loops": ("--loop", "as-written,step"),
        "complete": ("--json",),
    }

    def run(name: str) -> CompletedRun:
        programs = [program if program == "matmul" else faulty_program(program) for program in PROGRAMS[name]]
        (folder / "temporary" / name).mkdir(parents=True)
        variables: Any = {"ORPHAN": str(folder / "orphan"), "TMPDIR": str(folder / "temporary" / name)}
        words = ("run", *programs, *BRIEF, *options.get(name, ()))
        warm = None if name == "hangs_while_loading" else fresh_workers  # a server waits for the program without end
        return run_devbench(folder / name, *words, warm=warm, **variables)

    with ThreadPoolExecutor(3) as pool:
        return dict(zip(PROGRAMS, pool.map(run, PROGRAMS), strict=True))


def failure_of(result: Result) -> Failure:
    """Return the failure of a failed result."""
    assert result.status == "failed"
    assert result.failure is not None
    assert result.samples[-1].failure == result.failure
    return result.failure


def line_of(program: str, text: str) -> int:
    """Return the number of the first line of a program that contains `text`."""
    lines = (FAULTY_PROGRAMS / f"{program}.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_a_failed_worker_gives_exit_code_1_without_a_traceback_of_devbench(runs: dict[str, CompletedRun]) -> None:
    for name in ("crashes", "invalid_values", "hangs", "hangs_while_loading", "two_loops"):
        assert runs[name].code == 1, runs[name].text()
        assert "Traceback" not in runs[name].err
        assert "internal error" not in runs[name].err
        assert "bench/worker" not in runs[name].out


def test_after_a_failed_workload_the_next_is_measured_and_all_results_are_on_disk(
    runs: dict[str, CompletedRun],
) -> None:
    for name in ("crashes", "invalid_values"):
        assert set(runs[name].by_workload) == set(PROGRAMS[name])
    matmul = runs["invalid_values"].by_workload["matmul"]
    assert (matmul.status, matmul.failure) == ("complete", None)
    assert matmul.summary.step_seconds is not None
    assert "step time" in runs["invalid_values"].out


@pytest.mark.needs("posix")
def test_a_worker_leaves_no_temporary_file_however_it_ends(
    runs: dict[str, CompletedRun], tmp_path_factory: pytest.TempPathFactory
) -> None:
    temporary = tmp_path_factory.getbasetemp() / "failures0" / "temporary"
    assert {path.name for path in temporary.iterdir()} == set(runs)
    assert [str(path) for name in runs for path in (temporary / name).rglob("*")] == []


@pytest.mark.needs("posix")
@pytest.mark.parametrize(
    ("program", "signal", "source_line"),
    [("segfault", "SIGSEGV", "signal.SIGSEGV"), ("aborts", "SIGABRT", "os.abort()")],
)
def test_a_crash_is_reported_with_its_signal_its_line_and_its_last_output(
    program: str, signal: str, source_line: str, runs: dict[str, CompletedRun]
) -> None:
    failure = failure_of(runs["crashes"].by_workload[program])
    assert (failure.kind, failure.signal, failure.phase) == ("crashed", signal, "steps")
    line = line_of(program, source_line)
    assert failure.message == f"the worker was killed by {signal} ({program}.py, line {line})"
    assert failure.message in runs["crashes"].text()
    assert any(f"line {line} in as_written" in text for text in failure.last_lines)
    if program == "aborts":
        assert "the last line before the abort" in failure.last_lines


@pytest.mark.needs("posix")
def test_a_kill_is_reported_with_memory_as_its_likely_cause(runs: dict[str, CompletedRun]) -> None:
    failure = failure_of(runs["crashes"].by_workload["killed"])
    assert (failure.kind, failure.signal) == ("killed", "SIGKILL")
    assert "use a smaller batch" in failure.hint
    assert "use a smaller batch" in runs["crashes"].text()


@pytest.mark.needs("posix")
def test_a_dead_worker_is_noticed_and_its_child_processes_end_although_they_hold_its_pipes(
    runs: dict[str, CompletedRun],
) -> None:
    orphan = int((runs["crashes"].folder.parents[1] / "orphan").read_text())
    assert not survivors([psutil.Process(orphan)] if psutil.pid_exists(orphan) else [])


def test_an_exception_in_a_step_is_reported_with_its_line(runs: dict[str, CompletedRun]) -> None:
    failure = failure_of(runs["crashes"].by_workload["raises"])
    line = line_of("raises", "raise RuntimeError")
    assert (failure.kind, failure.signal) == ("error", None)
    assert failure.message.startswith("RuntimeError: planted error")
    assert f"raises.py, line {line}: raise RuntimeError" in " ".join(failure.message.split())
    assert f"raises.py, line {line}" in runs["crashes"].text()
    assert "RuntimeError: planted error" in failure.last_lines


def test_a_failed_worker_keeps_the_blocks_before_its_failure(runs: dict[str, CompletedRun]) -> None:
    for program in PROGRAMS["crashes"]:
        (sample,) = runs["crashes"].by_workload[program].samples
        (series,) = sample.series
        assert series.warmup or series.blocks
        assert sample.phases["first_step"] > 0


@pytest.mark.parametrize("program", ["nan_loss", "nan_inside"])
def test_a_step_that_returns_nan_invalidates_the_result(program: str, runs: dict[str, CompletedRun]) -> None:
    failure = failure_of(runs["invalid_values"].by_workload[program])
    assert failure.kind == "nan"
    assert failure.message == "a step returned nan, so its time does not represent a working program"
    assert "--dtype float32" in failure.hint
    assert runs["invalid_values"].by_workload[program].summary.step_seconds is None


def test_a_step_that_yields_text_is_reported_with_what_to_yield(runs: dict[str, CompletedRun]) -> None:
    failure = failure_of(runs["invalid_values"].by_workload["yields_text"])
    assert failure.kind == "workload"
    assert failure.message == "a step returned 'step done', which is not a number"
    assert "a tensor, an array, a number or a model" in failure.hint


def test_a_worker_that_hangs_is_ended_and_reported_with_its_line_and_the_option(runs: dict[str, CompletedRun]) -> None:
    failure = failure_of(runs["hangs"].by_workload["hangs"])
    assert (failure.kind, failure.phase) == ("hung", "steps")
    assert failure.message.startswith(f"the worker was silent for {TIMEOUT[1].removesuffix('s')} s")
    assert "--worker-timeout 10m" in failure.hint
    assert "--worker-timeout" in runs["hangs"].text()
    assert not survivors([psutil.Process(pid) for pid in worker_pids(runs["hangs"])])
    lines = (line_of("hangs", "while True"), line_of("hangs", "pass"))
    assert os.name == "nt" or any(f"(hangs.py, line {line})" in failure.message for line in lines)


def test_a_program_that_hangs_while_the_worker_loads_it_is_ended_too(runs: dict[str, CompletedRun]) -> None:
    failure = failure_of(runs["hangs_while_loading"].by_workload["hangs_in_worker"])
    assert (failure.kind, failure.phase) == ("hung", "loading")
    line = line_of("hangs_in_worker", "wait()")
    assert os.name == "nt" or f"(hangs_in_worker.py, line {line})" in failure.message


def worker_pids(run: CompletedRun) -> list[int]:
    """Return the workers of a run that still exist."""
    return [s.pid for result in run.by_workload.values() for s in result.samples if psutil.pid_exists(s.pid)]


def test_if_one_of_two_interleaved_workers_fails_the_other_continues(runs: dict[str, CompletedRun]) -> None:
    results = runs["two_loops"].by_workload
    assert "planted error" in failure_of(results["fails_as_written as-written"]).message
    assert results["fails_as_written step"].status == "complete"
    assert len(results["fails_as_written step"].samples[0].series[0].blocks) >= 5


def test_if_both_interleaved_workers_fail_both_are_reported(runs: dict[str, CompletedRun]) -> None:
    for loop in ("as-written", "step"):
        failure = failure_of(runs["two_loops"].by_workload[f"broken_inputs {loop}"])
        assert "RuntimeError: planted error in inputs" in failure.message
        assert f"broken_inputs.py, line {line_of('broken_inputs', 'raise RuntimeError')}" in failure.message


def test_the_output_of_a_program_reaches_neither_the_json_nor_the_worker_protocol(
    runs: dict[str, CompletedRun],
) -> None:
    run = runs["complete"]
    assert run.code == 0, run.text()[-3000:]
    document = json.loads(run.out)
    assert [result["spec"]["workload"] for result in document["results"]] == ["prints_much", "swallows_exceptions"]
    assert run.by_workload["prints_much"].status == "complete"
    assert "ooo" not in run.err


def test_a_program_that_swallows_exceptions_is_measured_and_ends(runs: dict[str, CompletedRun]) -> None:
    result = runs["complete"].by_workload["swallows_exceptions"]
    assert (result.status, result.failure) == ("complete", None)
    assert result.placement is not None
    assert result.placement.verified
