"""Which steps of a script are rare and long because of what a line does, and not because of other work."""

from __future__ import annotations

import pytest

from bench.worker.diagnose.own_time import Place
from bench.worker.frames import SourceLine
from bench.worker.script.rare_steps import TimedCall, described, rare_calls

pytestmark = pytest.mark.once

TRAIN, SAVE = SourceLine("", 12), SourceLine("", 14)
STEP, SAVING = 0.003, 0.06
"""Seconds of a step, and of saving a checkpoint."""


def call(*work: tuple[SourceLine, float]) -> TimedCall:
    samples = [(Place(line, "", "graph"), seconds) for line, seconds in work]
    return TimedCall(1, sum(seconds for _, seconds in work), samples)


def saving(every: int, steps: int = 200) -> list[TimedCall]:
    """Return steps of which every n-th also saves a checkpoint."""
    return [call((TRAIN, STEP), *([] if n % every else [(SAVE, SAVING)])) for n in range(steps)]


@pytest.mark.parametrize("every", [6, 20, 50])
def test_steps_that_save_a_checkpoint_are_found_with_their_line(every: int) -> None:
    calls = saving(every)
    rare, lines = rare_calls(calls)
    assert lines == [SAVE]
    found = described(rare, calls, lines)
    assert found.seconds == pytest.approx(SAVING)
    assert found.every == pytest.approx(every, rel=0.1)
    assert (found.median, found.lines) == (STEP, [14])


def test_steps_that_other_work_interrupts_are_not_the_work_of_a_line() -> None:
    interrupted = [call((TRAIN, STEP if n % 20 else 0.05), (SAVE, 0.0001)) for n in range(200)]
    assert rare_calls(interrupted) == ([], [])


@pytest.mark.parametrize("calls", [saving(1), saving(3), saving(100), [call((TRAIN, STEP))]])
def test_frequent_or_single_long_steps_are_not_rare_ones(calls: list[TimedCall]) -> None:
    assert rare_calls(calls) == ([], [])


def test_an_interrupted_step_does_not_count_among_those_that_save() -> None:
    calls = saving(20)
    calls[5] = call((TRAIN, 0.05))
    rare, lines = rare_calls(calls)
    assert lines == [SAVE]
    assert len(rare) == 10
