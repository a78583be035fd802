"""Runs that are cut off: what was measured is kept and marked, and no worker survives, suspended or not."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from devbench_process import BRIEF, Devbench, Ended, started, survivors, userfile

pytestmark = [pytest.mark.needs("posix"), pytest.mark.once]


class Steps:
    """The read end of the pipe into which `counts_steps.py` writes a byte each step."""

    def __init__(self, path: Path) -> None:
        self.pipe = -1
        if sys.platform == "win32":
            raise NotImplementedError
        os.mkfifo(path)
        self.pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def pass_by(self, count: int) -> None:
        """Waits for so many steps from now on."""
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
            seen = len(os.read(self.pipe, count))
            assert seen, "the worker ended too early"
            count -= seen


@contextmanager
def measuring(folder: Path, *words: str, workers: int) -> Iterator[tuple[Devbench, Steps]]:
    """A run whose workers have all come to their steady state."""
    steps = Steps(folder / "steps")
    with started(
        folder, "run", userfile("counts_steps"), *BRIEF, *words, listen=True, STEPS=str(folder / "steps")
    ) as run:
        for _ in range(workers):
            run.until("steady state")
        yield run, steps
    os.close(steps.pipe)


def kept(ended: Ended, signum: int) -> None:
    """Checks that it ended as an interrupted run does."""
    assert ended.code == 128 + signum, ended.said()
    assert ended.results
    for result in ended.results.values():
        assert (result.status, result.failure) == ("partial", None)
        assert result.stop is not None
        assert result.stop.reason == "interrupted"
        (sample,) = result.samples
        assert sample.failure is not None
        assert sample.failure.kind == "interrupted"
        (series,) = sample.series
        assert series.blocks
        assert result.summary.step_seconds is not None
    assert "PARTIAL: interrupted" in ended.out
    assert "step" in ended.out
    assert "error: interrupted: the results so far were kept and marked as partial" in ended.err
    assert "Traceback" not in ended.err


def one_is_suspended(workers: list[psutil.Process]) -> bool:
    """Whether one of them is seen stopped; while a turn passes on, for a moment none is."""
    return any(psutil.STATUS_STOPPED in {each.status() for each in workers} for _ in range(5_000))


def interrupt(run: Devbench) -> None:
    """What a terminal does on Ctrl-C."""
    if sys.platform == "win32":
        raise NotImplementedError
    os.killpg(run.process.pid, signal.SIGINT)


@pytest.mark.essential
def test_ctrl_c_keeps_what_was_measured_and_ends_the_worker(tmp_path: Path) -> None:
    with measuring(tmp_path, workers=1) as (run, steps):
        steps.pass_by(20)
        workers = run.workers()
        assert len(workers) == 1
        interrupt(run)
        ended = run.end()
        assert not survivors(workers)
    kept(ended, signal.SIGINT)


@pytest.mark.essential
def test_sigterm_ends_a_trial_whose_workers_interleave_the_suspended_too(tmp_path: Path) -> None:
    with measuring(tmp_path, "--loop", "as-written,step", workers=2) as (run, steps):
        steps.pass_by(25)
        workers = run.workers()
        assert len(workers) == 2
        assert one_is_suspended(workers)
        run.process.terminate()
        ended = run.end()
        assert not survivors(workers)
    assert len(ended.results) == 2
    kept(ended, signal.SIGTERM)


@pytest.mark.needs("linux")
def test_workers_die_with_a_parent_that_is_killed_the_suspended_too(tmp_path: Path) -> None:
    with measuring(tmp_path, "--loop", "as-written,step", workers=2) as (run, _):
        workers = run.workers()
        assert len(workers) == 2
        assert one_is_suspended(workers)
        run.process.kill()
        run.process.wait()
        assert not survivors(workers)


@pytest.mark.needs("linux")
def test_a_worker_that_swallows_exceptions_ends_with_its_parent_where_the_system_does_not_see_to_it(
    tmp_path: Path,
) -> None:
    words = ("run", userfile("swallows_exceptions"), "--param", "outlive=true")
    with started(tmp_path, *words, listen=True) as run:
        run.until("steady state")
        workers = run.workers()
        assert len(workers) == 1
        run.process.kill()
        run.process.wait()
        assert not survivors(workers)


def test_an_interruption_before_anything_is_measured_ends_without_a_traceback(tmp_path: Path) -> None:
    if sys.platform == "win32":
        raise NotImplementedError
    (tmp_path / "slow.py").write_text("import os, time\nopen(os.environ['HERE'], 'w').close()\ntime.sleep(600)\n")
    os.mkfifo(tmp_path / "here")
    with started(tmp_path, "run", "./slow.py", HERE=str(tmp_path / "here")) as run:
        (tmp_path / "here").open().close()
        looking = run.workers()
        assert len(looking) == 1
        interrupt(run)
        ended = run.end()
        assert not survivors(looking)
    assert ended.code == 130
    assert ended.err == "error: interrupted before the first result\n"
    assert "Traceback" not in ended.err


def test_two_runs_at_once_in_one_folder_keep_out_of_each_others_way(tmp_path: Path) -> None:
    output = ("--output", str(tmp_path / "results"))
    words = ("run", userfile("fails_as_written"), "--loop", "step", *BRIEF, *output)
    with started(tmp_path / "one", *words) as one, started(tmp_path / "two", *words) as two:
        codes = (one.end().code, two.end().code)
    assert codes == (0, 0)
    files = [path.name for path in (tmp_path / "results").iterdir()]
    assert len(files) == 2
    together = Ended(0, "", "", tmp_path / "results").every
    assert [each.status for each in together] == ["complete", "complete"]
    assert len({each.id for each in together}) == 2
    assert len({each.samples[0].pid for each in together}) == 2
