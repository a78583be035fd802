"""Which function of a script is its eager step."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bench.worker.script.calls import ScriptCall
from bench.worker.script.eager_steps import EagerSteps

pytestmark = pytest.mark.once
UPDATE = ScriptCall("updates", "SGD", "train.py", 3)


class Trainer:
    """A trainer whose step is a method."""

    def step(self, steps: EagerSteps) -> str:
        """Make an update."""
        return update(steps)


def update(steps: EagerSteps) -> str:
    """Make an update, in a function that the step calls."""
    steps.updated(UPDATE)
    return "eager"


def step(steps: EagerSteps) -> str:
    """Make an update."""
    return update(steps)


@pytest.fixture
def steps() -> EagerSteps:
    seen: Any = SimpleNamespace(is_program=lambda path: path == __file__)
    return EagerSteps(seen)


def test_the_outermost_function_that_is_called_anew_for_each_step_is_found_and_replaced(
    steps: EagerSteps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "step", step)  # restores it
    monkeypatch.setattr(Trainer, "step", Trainer.step)
    steps.change = lambda call, function: lambda *arguments: f"graph of {function.__name__}"
    assert [step(steps) for _ in range(3)] == ["eager", "eager", "graph of step"]
    assert steps.names == {UPDATE.token: "step"}
    steps.names, steps._first = {}, {}
    trainer = Trainer()
    assert [trainer.step(steps) for _ in range(3)] == ["eager", "eager", "graph of step"]


def test_a_step_that_is_written_in_the_loop_has_no_function(steps: EagerSteps) -> None:
    for _ in range(3):
        steps.updated(UPDATE)
    assert steps.names == {UPDATE.token: ""}


def test_a_step_that_is_kept_in_a_variable_stays_eager_and_is_reported(
    steps: EagerSteps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "step", step)  # restores it
    kept = step
    steps.change = lambda call, function: lambda *arguments: "graph"
    assert [kept(steps) for _ in range(3)] == ["eager"] * 3
    assert steps.ineffective
