"""A script that goes on after its training is ended once it is idle. One that prepares its next step is not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest

from bench.worker import channel
from bench.worker.script import silence
from bench.worker.script.progress import ScriptProgress
from bench.worker.script.silence import Silence

pytestmark = pytest.mark.once

TIMEOUT = 60.0
BUSY_LIMIT = silence.BUSY_SHARE * TIMEOUT - silence.UNSEEN_SECONDS


class Script:
    """A script whose behaviour a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps, self.cpu, self.cpu_per_check = 0, 0.0, 0.0
        self.returned, self.needs_more, self.may_need_more = False, False, False
        self.reports = 0
        self.now, self.seconds = 0.0, 1.0
        monkeypatch.setattr(silence, "_cpu_seconds", self._use_cpu)
        monkeypatch.setattr("bench.worker.script.silence.time", SimpleNamespace(perf_counter=self._pass_time))
        progress = cast("ScriptProgress", self)
        self.silence = Silence(TIMEOUT, progress, lambda path: path.endswith("script.py"), ("/library/",))

    def _pass_time(self) -> float:
        self.now += self.seconds
        return self.now

    def _use_cpu(self) -> float:
        self.cpu += self.cpu_per_check
        return self.cpu

    def checks_until_end(self, most: int = 200) -> int | None:
        """Return the number of checks until the script is to be ended. None if that is not within `most` checks.

        The first check, which sees the steps, does not count. The second one knows no CPU time before it.
        """
        return next((number for number in range(most) if self._check()), None)

    def _check(self) -> bool:
        if self.silence.check():
            return True
        self.reports += self.silence.is_busy()
        return False


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """Return a script that has run a step."""
    script = Script(monkeypatch)
    script.steps = 1
    return script


@contextmanager
def blocked_in(*files: str) -> Iterator[None]:
    """Block a thread in functions of these files, the outermost first."""
    entered, leave = threading.Event(), threading.Event()

    def wait() -> None:
        entered.set()
        leave.wait()

    call = wait
    for file in reversed(files):
        module = ModuleType("module")
        exec(compile("def call(): inner()", file, "exec"), module.__dict__)
        module.inner = call  # type: ignore[attr-defined]
        call = module.call
    thread = threading.Thread(target=call)
    thread.start()
    entered.wait()
    try:
        yield
    finally:
        leave.set()
        thread.join()


def test_an_idle_script_is_ended_after_half_of_the_time_out(script: Script) -> None:
    assert script.checks_until_end() == TIMEOUT / 2 + 1


def test_a_script_whose_fit_returned_is_ended_sooner(script: Script) -> None:
    script.returned = True
    assert script.checks_until_end() == silence.RETURNED_SECONDS + 1


def test_a_script_before_its_first_step_is_never_ended(script: Script) -> None:
    script.steps = 0
    assert script.checks_until_end() is None


def test_each_step_starts_the_count_anew(script: Script) -> None:
    for _ in range(20):
        assert script.checks_until_end(int(TIMEOUT / 2) - 1) is None
        script.steps += 1


def test_a_script_from_which_more_steps_are_needed_is_never_ended(script: Script) -> None:
    script.needs_more = True
    assert script.checks_until_end() is None


def test_the_parent_is_told_that_a_script_computes_for_long_between_two_steps(script: Script) -> None:
    script.needs_more, script.cpu_per_check = True, 0.5
    assert script.checks_until_end(2000) is None
    assert script.reports == silence.LONGEST_BUSY / (silence.REPORTED_SHARE * TIMEOUT)


def test_the_parent_is_not_told_of_a_script_that_does_nothing(script: Script) -> None:
    script.needs_more = True
    assert script.checks_until_end() is None
    assert script.reports == 0


def test_a_script_that_may_prepare_its_training_is_not_ended_while_it_computes(script: Script) -> None:
    script.may_need_more, script.cpu_per_check = True, 0.5
    end = script.checks_until_end(2000)
    assert end is not None
    assert end == pytest.approx(silence.LONGEST_BUSY + BUSY_LIMIT, abs=2)


def test_a_script_that_does_nothing_instead_of_its_training_is_ended_before_it_counts_as_hung(script: Script) -> None:
    script.may_need_more = True
    assert script.checks_until_end() == BUSY_LIMIT


def test_a_busy_script_is_ended_before_it_counts_as_hung(script: Script) -> None:
    script.cpu_per_check = 0.5
    assert script.checks_until_end() == BUSY_LIMIT


def test_a_script_that_waits_within_tensorflow_is_busy(script: Script) -> None:
    with blocked_in("/home/script.py", "/library/function.py"):
        assert script.checks_until_end() == BUSY_LIMIT


def test_threads_of_tensorflow_and_of_the_script_may_wait(script: Script) -> None:
    with blocked_in("/library/queue.py"), blocked_in("/home/script.py", "/other/socket.py"):
        assert script.checks_until_end() == TIMEOUT / 2 + 1


def test_the_time_of_a_suspension_hardly_counts(script: Script) -> None:
    script.seconds = 30.0
    assert script.checks_until_end() == TIMEOUT / 2 / silence.LONGEST_CHECK + 1


def test_a_worker_that_waits_for_an_order_is_not_silent(script: Script) -> None:
    with blocked_in("/home/script.py", channel.__file__):
        assert script.checks_until_end() is None


def test_the_cpu_time_is_that_of_the_other_threads() -> None:
    def used_by(work: Callable[[], None]) -> float:
        before = silence._cpu_seconds()
        work()
        after = silence._cpu_seconds()
        assert before is not None
        assert after is not None
        return after - before

    def compute() -> None:
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass

    def compute_in_a_thread() -> None:
        thread = threading.Thread(target=compute)
        thread.start()
        thread.join()

    assert used_by(compute_in_a_thread) >= 0.2
    assert used_by(compute) <= 0.1  # this thread, which checks, does not count
