"""A script is ended while it is silent only if it has made the steps that are known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.model.recognition import StepKind, StepSource
from bench.worker.fit_hook import FitHook
from bench.worker.script.progress import ScoutProgress, TrialProgress
from bench.worker.script.scout import Scout
from bench.worker.step_counter import StepCounter
from bench.worker.timed_loop import TimedLoop

pytestmark = pytest.mark.once

RETURNED = cast("FitHook", SimpleNamespace(fit_start=1.0, fit_end=2.0))
RUNNING = cast("FitHook", SimpleNamespace(fit_start=3.0, fit_end=2.0))


def trial(kind: StepKind, planned: int | None, hook: FitHook, steps: int, full: bool = False) -> TrialProgress:
    """Return the progress of a script of which the scout saw 20 steps."""
    timed_loop = cast("Any", StepCounter.__new__(StepCounter) if full else TimedLoop.__new__(TimedLoop))
    timed_loop.issued, timed_loop.steps_run = (0, steps) if full else (steps, 0)
    target = StepSource(
        kind=kind, name="train", file="a.py", line=1, token="a", steps=20, planned=planned, steps_per_call=1
    )
    return TrialProgress(hook, timed_loop, target)


@pytest.mark.parametrize(
    ("kind", "planned", "hook", "steps", "full", "needs_more", "returned"),
    [
        ("fit", 30, RUNNING, 29, False, True, False),
        ("fit", 30, RUNNING, 30, False, False, False),
        ("fit", 30, RETURNED, 29, False, False, False),  # it stopped itself; another call may follow
        ("fit", 30, RETURNED, 30, False, False, True),
        ("fit", None, RETURNED, 20, False, False, True),
        ("updates", None, RETURNED, 19, False, True, False),
        ("updates", None, RETURNED, 20, False, False, False),
        ("fit", 30, RETURNED, 29, True, True, False),
        ("fit", 30, RETURNED, 30, True, False, False),
        ("fit", None, RETURNED, 99, True, True, False),  # nobody knows when it is over
    ],
)
def test_a_loop_needs_more_until_its_known_steps_have_run(
    kind: StepKind, planned: int | None, hook: FitHook, steps: int, full: bool, needs_more: bool, returned: bool
) -> None:
    progress = trial(kind, planned, hook, steps, full)
    assert progress.steps == steps
    assert (progress.needs_more, progress.returned) == (needs_more, returned)


@pytest.mark.parametrize(
    ("only_fits", "hook", "returned"), [(True, RETURNED, True), (True, RUNNING, False), (False, RETURNED, False)]
)
def test_a_counted_script_has_returned_if_fit_is_its_only_training(
    only_fits: bool, hook: FitHook, returned: bool
) -> None:
    scout = cast("Scout", SimpleNamespace(only_fits=only_fits, is_missing=True, may_need_more=True, steps_run=7))
    progress = ScoutProgress(hook, scout)
    assert (progress.steps, progress.needs_more, progress.may_need_more) == (7, True, True)
    assert progress.returned == returned
