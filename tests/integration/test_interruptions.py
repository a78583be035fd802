"""Interrupted runs: the results so far are kept and marked as partial, and no worker survives, suspended or not."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from devbench_process import BRIEF, CompletedRun, DevbenchProcess, faulty_program, start_devbench, survivors
from warm_workers import WarmServer

pytestmark = [pytest.mark.needs("posix"), pytest.mark.once]


class Steps:
    """The read end of the pipe into which `counts_steps.py` writes a byte in each step."""

    def __init__(self, path: Path) -> None:
        self.pipe = -1
        if sys.platform == "win32":
            raise NotImplementedError
        os.mkfifo(path)
        self.pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def wait_for(self, count: int) -> None:
        """Wait for this number of steps from now on."""
        if sys.platform == "win32":
            raise NotImplementedError
        os.set_blocking(self.pipe, False)
        try:
            while os.read(self.pipe, 4096):
                pass
        except BlockingIOError:
            pass
        os.set_blocking(self.pipe, True)
        while count > 0:
            read = len(os.read(self.pipe, count))
            assert read, "the worker ended too early"
            count -= read


@contextmanager
def steady_run(
    folder: Path, warm: WarmServer | None, *arguments: str, workers: int
) -> Iterator[tuple[DevbenchProcess, Steps]]:
    """Start a run, and wait until all its workers are in their steady state."""
    steps = Steps(folder / "steps")
    words = ("run", faulty_program("counts_steps"), *BRIEF, *arguments)
    with start_devbench(folder, *words, pipe_stderr=True, warm=warm, STEPS=str(folder / "steps")) as run:
        for _ in range(workers):
            run.wait_for("steady state")
        yield run, steps
    os.close(steps.pipe)


def check_interrupted(completed: CompletedRun, signum: int) -> None:
    """Check the exit code, the results and the output of an interrupted run."""
    assert completed.code == 128 + signum, completed.text()
    assert completed.by_workload
    for result in completed.by_workload.values():
        assert (result.status, result.failure) == ("partial", None)
        assert result.stop is not None
        assert result.stop.reason == "interrupted"
        (sample,) = result.samples
        assert sample.failure is not None
        assert sample.failure.kind == "interrupted"
        (series,) = sample.series
        assert series.blocks
        assert result.summary.step_seconds is not None
    assert "PARTIAL: interrupted" in completed.out
    assert "step" in completed.out
    assert "error: interrupted: the results so far were kept and marked as partial" in completed.err
    assert "Traceback" not in completed.err


def any_is_suspended(workers: list[psutil.Process]) -> bool:
    """Return whether a worker is suspended. Poll, because all run for a moment between two blocks."""
    return any(psutil.STATUS_STOPPED in {worker.status() for worker in workers} for _ in range(5_000))


def interrupt(run: DevbenchProcess) -> None:
    """Send the signals that a terminal sends on Ctrl-C."""
    if sys.platform == "win32":
        raise NotImplementedError
    os.killpg(run.process.pid, signal.SIGINT)


@pytest.mark.essential
def test_ctrl_c_keeps_what_was_measured_and_ends_the_worker(tmp_path: Path, fresh_workers: WarmServer | None) -> None:
    with steady_run(tmp_path, fresh_workers, workers=1) as (run, steps):
        steps.wait_for(20)
        workers = run.workers()
        assert len(workers) == 1
        interrupt(run)
        completed = run.wait()
        assert not survivors(workers)
    check_interrupted(completed, signal.SIGINT)


@pytest.mark.essential
def test_sigterm_ends_interleaved_workers_including_the_suspended_one(
    tmp_path: Path, fresh_workers: WarmServer | None
) -> None:
    with steady_run(tmp_path, fresh_workers, "--loop", "as-written,step", workers=2) as (run, steps):
        steps.wait_for(25)
        workers = run.workers()
        assert len(workers) == 2
        assert any_is_suspended(workers)
        run.process.terminate()
        completed = run.wait()
        assert not survivors(workers)
    assert len(completed.by_workload) == 2
    check_interrupted(completed, signal.SIGTERM)


@pytest.mark.needs("linux")
def test_workers_end_with_a_killed_parent_including_the_suspended_one(
    tmp_path: Path, fresh_workers: WarmServer | None
) -> None:
    with steady_run(tmp_path, fresh_workers, "--loop", "as-written,step", workers=2) as (run, _):
        workers = run.workers()
        assert len(workers) == 2
        assert any_is_suspended(workers)
        run.process.kill()
        run.process.wait()
        assert not survivors(workers)


@pytest.mark.needs("linux")
def test_a_worker_that_swallows_exceptions_ends_with_its_parent_without_help_from_linux(
    tmp_path: Path,
) -> None:
    arguments = ("run", faulty_program("swallows_exceptions"), "--param", "outlive=true")
    with start_devbench(tmp_path, *arguments, pipe_stderr=True) as run:
        run.wait_for("steady state")
        workers = run.workers()
        assert len(workers) == 1
        run.process.kill()
        run.process.wait()
        assert not survivors(workers)


def test_an_interruption_before_anything_is_measured_ends_without_a_traceback(tmp_path: Path) -> None:
    if sys.platform == "win32":
        raise NotImplementedError
    (tmp_path / "slow.py").write_text(
        "import os, time\nopen(os.environ['HERE'], 'w').close()\ntime.sleep(600)\ndef step(): ...\n"
    )
    os.mkfifo(tmp_path / "here")
    with start_devbench(tmp_path, "run", "./slow.py", HERE=str(tmp_path / "here")) as run:
        (tmp_path / "here").open().close()
        workers = run.workers()
        assert len(workers) == 1
        interrupt(run)
        completed = run.wait()
        assert not survivors(workers)
    assert completed.code == 130
    assert completed.err == "error: interrupted before the first result\n"
    assert "Traceback" not in completed.err


def test_two_runs_at_once_in_one_folder_do_not_interfere(tmp_path: Path) -> None:
    output = ("--output", str(tmp_path / "results"))
    arguments = ("run", faulty_program("fails_as_written"), "--loop", "step", *BRIEF, *output)
    with (
        start_devbench(tmp_path / "first", *arguments) as first,
        start_devbench(tmp_path / "second", *arguments) as second,
    ):
        codes = (first.wait().code, second.wait().code)
    assert codes == (0, 0)
    names = [path.name for path in (tmp_path / "results").iterdir()]
    assert len(names) == 2
    results = CompletedRun(0, "", "", tmp_path / "results").results
    assert [result.status for result in results] == ["complete", "complete"]
    assert len({result.id for result in results}) == 2
    assert len({result.samples[0].pid for result in results}) == 2
