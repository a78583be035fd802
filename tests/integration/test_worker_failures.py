"""Workers that come to a bad end: each is told by its name, its line and a fix, and the others go on.

The runs below are made once, some at a time: those that hang have to be waited for, and the others run meanwhile.
"""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from devbench_process import BRIEF, USERFILES, Ended, devbench, survivors, userfile

from bench.model.failure import Failure
from bench.model.result import Result

ENDS = {
    "hung": ("hangs",),
    "unloaded": ("hangs_in_worker",),
    "ended": ("segfault", "aborts", "killed", "raises"),
    "wrong": ("nan_loss", "nan_inside", "yields_text", "matmul"),
    "turns": ("fails_as_written", "broken_inputs"),
    "well": ("prints_much", "swallows_exceptions"),
}
pytestmark = [pytest.mark.timeout(1500), pytest.mark.once]

PATIENT = ("--worker-timeout", "45s")
"""Longer than TensorFlow's import takes on a machine that does other things as well."""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    """What each of the runs ended with."""
    folder = tmp_path_factory.mktemp("ends")
    extra = {"hung": PATIENT, "unloaded": PATIENT, "turns": ("--loop", "as-written,step"), "well": ("--json",)}

    def run(name: str) -> Ended:
        files = [each if each == "matmul" else userfile(each) for each in ENDS[name]]
        (folder / "temporary" / name).mkdir(parents=True)
        variables = {"ORPHAN": str(folder / "orphan"), "TMPDIR": str(folder / "temporary" / name)}
        return devbench(folder / name, "run", *files, *BRIEF, *extra.get(name, ()), **variables)

    with ThreadPoolExecutor(3) as pool:
        return dict(zip(ENDS, pool.map(run, ENDS), strict=True))


def failure(result: Result) -> Failure:
    """How it failed, which it must have."""
    assert result.status == "failed"
    assert result.failure is not None
    assert result.samples[-1].failure == result.failure
    return result.failure


def line_of(program: str, text: str) -> int:
    """Number of the line of a program that holds `text`."""
    lines = (USERFILES / f"{program}.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_a_failed_worker_is_exit_1_without_a_traceback_of_ours(ended: dict[str, Ended]) -> None:
    for name in ("ended", "wrong", "hung", "unloaded", "turns"):
        assert ended[name].code == 1, ended[name].said()
        assert "Traceback" not in ended[name].err
        assert "internal error" not in ended[name].err
        assert "bench/worker" not in ended[name].out


def test_whatever_happens_to_one_workload_the_next_is_measured_and_each_is_on_disk(ended: dict[str, Ended]) -> None:
    for name in ("ended", "wrong"):
        assert set(ended[name].results) == set(ENDS[name])
    matmul = ended["wrong"].results["matmul"]
    assert (matmul.status, matmul.failure) == ("complete", None)
    assert matmul.summary.step_seconds is not None
    assert "step time" in ended["wrong"].out


@pytest.mark.needs("posix")
def test_a_worker_leaves_no_temporary_file_however_it_ends(
    ended: dict[str, Ended], tmp_path_factory: pytest.TempPathFactory
) -> None:
    temporary = tmp_path_factory.getbasetemp() / "ends0" / "temporary"
    assert {each.name for each in temporary.iterdir()} == set(ended)
    assert [str(left) for name in ended for left in (temporary / name).rglob("*")] == []


@pytest.mark.needs("posix")
@pytest.mark.parametrize(
    ("program", "signal", "place"),
    [("segfault", "SIGSEGV", "signal.SIGSEGV"), ("aborts", "SIGABRT", "os.abort()")],
)
def test_a_crash_is_told_with_its_signal_its_line_and_its_last_words(
    program: str, signal: str, place: str, ended: dict[str, Ended]
) -> None:
    found = failure(ended["ended"].results[program])
    assert (found.kind, found.signal, found.phase) == ("crashed", signal, "steps")
    line = line_of(program, place)
    assert found.message == f"the worker was killed by {signal} ({program}.py, line {line})"
    assert found.message in ended["ended"].said()
    assert any(f"line {line} in as_written" in each for each in found.last_lines)
    if program == "aborts":
        assert "the last words before the end" in found.last_lines


@pytest.mark.needs("posix")
def test_a_kill_is_told_with_memory_as_its_likely_cause(ended: dict[str, Ended]) -> None:
    found = failure(ended["ended"].results["killed"])
    assert (found.kind, found.signal) == ("killed", "SIGKILL")
    assert "use a smaller batch" in found.hint
    assert "use a smaller batch" in ended["ended"].said()


@pytest.mark.needs("posix")
def test_a_workers_death_is_seen_and_its_own_processes_end_though_they_hold_its_pipes(ended: dict[str, Ended]) -> None:
    orphan = int((ended["ended"].folder.parents[1] / "orphan").read_text())
    assert not survivors([psutil.Process(orphan)] if psutil.pid_exists(orphan) else [])


def test_a_step_that_raises_is_told_by_its_own_line(ended: dict[str, Ended]) -> None:
    found = failure(ended["ended"].results["raises"])
    line = line_of("raises", "raise RuntimeError")
    assert (found.kind, found.signal) == ("error", None)
    assert found.message.startswith("RuntimeError: the middle of nowhere")
    assert f"raises.py, line {line}: raise RuntimeError" in " ".join(found.message.split())
    assert f"raises.py, line {line}" in ended["ended"].said()
    assert "RuntimeError: the middle of nowhere" in found.last_lines


def test_what_was_timed_before_a_bad_end_is_kept(ended: dict[str, Ended]) -> None:
    for program in ENDS["ended"]:
        (sample,) = ended["ended"].results[program].samples
        (series,) = sample.series
        assert series.warmup or series.blocks
        assert sample.phases["first_step"] > 0


@pytest.mark.parametrize("program", ["nan_loss", "nan_inside"])
def test_a_step_that_gives_no_number_invalidates_the_result(program: str, ended: dict[str, Ended]) -> None:
    found = failure(ended["wrong"].results[program])
    assert found.kind == "nan"
    assert found.message == "a step returned nan, so its time does not represent a working program"
    assert "--dtype float32" in found.hint
    assert ended["wrong"].results[program].summary.step_seconds is None


def test_a_step_that_yields_no_number_at_all_is_told_what_to_yield(ended: dict[str, Ended]) -> None:
    found = failure(ended["wrong"].results["yields_text"])
    assert found.kind == "workload"
    assert found.message == "a step returned 'step done', which is not a number"
    assert "a tensor, an array, a number or a model" in found.hint


def test_a_worker_that_hangs_is_ended_and_told_by_its_line_and_the_option(ended: dict[str, Ended]) -> None:
    found = failure(ended["hung"].results["hangs"])
    assert (found.kind, found.phase) == ("hung", "steps")
    assert found.message.startswith(f"the worker was silent for {PATIENT[1].removesuffix('s')} s")
    assert "--worker-timeout 10m" in found.hint
    assert "--worker-timeout" in ended["hung"].said()
    assert not survivors([psutil.Process(p) for p in pids(ended["hung"])])
    lines = (line_of("hangs", "while True"), line_of("hangs", "pass"))
    assert os.name == "nt" or any(f"(hangs.py, line {each})" in found.message for each in lines)


def test_a_program_that_hangs_while_the_worker_loads_it_is_ended_too(ended: dict[str, Ended]) -> None:
    found = failure(ended["unloaded"].results["hangs_in_worker"])
    assert (found.kind, found.phase) == ("hung", "loading")
    line = line_of("hangs_in_worker", "wait()")
    assert os.name == "nt" or f"(hangs_in_worker.py, line {line})" in found.message


def pids(run: Ended) -> list[int]:
    """Its workers that are still there."""
    return [s.pid for each in run.results.values() for s in each.samples if psutil.pid_exists(s.pid)]


def test_where_one_of_two_fails_the_other_goes_on_alone(ended: dict[str, Ended]) -> None:
    results = ended["turns"].results
    assert "this way it does not go" in failure(results["fails_as_written as-written"]).message
    assert results["fails_as_written step"].status == "complete"
    assert len(results["fails_as_written step"].samples[0].series[0].blocks) >= 5


def test_where_both_fail_both_are_told(ended: dict[str, Ended]) -> None:
    for loop in ("as-written", "step"):
        found = failure(ended["turns"].results[f"broken_inputs {loop}"])
        assert "RuntimeError: there is nothing to eat" in found.message
        assert f"broken_inputs.py, line {line_of('broken_inputs', 'raise RuntimeError')}" in found.message


def test_what_a_program_prints_gets_neither_into_the_document_nor_between_worker_and_parent(
    ended: dict[str, Ended],
) -> None:
    run = ended["well"]
    assert run.code == 0, run.said()[-3000:]
    document = json.loads(run.out)
    assert [each["spec"]["workload"] for each in document["results"]] == ["prints_much", "swallows_exceptions"]
    assert run.results["prints_much"].status == "complete"
    assert "ooo" not in run.err


def test_a_program_that_swallows_every_exception_is_measured_and_ends(ended: dict[str, Ended]) -> None:
    result = ended["well"].results["swallows_exceptions"]
    assert (result.status, result.failure) == ("complete", None)
    assert result.placement is not None
    assert result.placement.verified
