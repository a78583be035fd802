"""What is told of a whole training (`--full`) whose program fails after its last step, or runs none."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from bench.errors import NotApplicable
from bench.model.facts import Facts
from bench.worker import full_training
from bench.worker.diagnose import program
from bench.worker.fit_epochs import FitEpochs
from bench.worker.protocol import Note

pytestmark = pytest.mark.once


def failing(name: str) -> Any:
    raise ValueError(f"{name} is wrong")


def rig(*functions: str, **values: Any) -> Any:
    """Return a rig of a workload that defines some functions, all of which fail."""
    sent: list[Note] = []
    spec = SimpleNamespace(loop="as-written", workload="mine", script=None)
    values = {"call": failing, "data": None, "yields": False, "facts": Facts(), "epoch": None, **values}
    return SimpleNamespace(has=lambda name: name in functions, send=sent.append, sent=sent, spec=spec, **values)


def test_a_training_keeps_its_metrics_if_evaluate_fails() -> None:
    history = SimpleNamespace(history={"loss": [2.0, 1.0], "val_loss": []})
    mine = rig("as_written", "evaluate")
    counter: Any = SimpleNamespace(last_value=None)
    assert full_training.final_metrics(mine, history, counter) == {"loss": 1.0}
    assert [note.text for note in mine.sent] == ["evaluate failed: ValueError: evaluate is wrong"]


def test_a_training_without_a_step_is_refused_with_a_hint() -> None:
    mine, counter = rig("as_written", call=lambda name: None), SimpleNamespace(steps_run=0, last_value=None)
    with pytest.raises(NotApplicable, match="devbench saw no step in as_written of mine") as caught:
        full_training.train(mine, counter)  # type: ignore[arg-type]
    assert "model.fit" in caught.value.hint


def test_measured_steps_stay_if_total_steps_fails() -> None:
    mine = rig("total_steps", state=SimpleNamespace(program_steps=None), p=SimpleNamespace())
    mine.tf = SimpleNamespace(config=SimpleNamespace(functions_run_eagerly=lambda: False))
    mine.state.function = None
    hook: Any = SimpleNamespace(model=None, epochs=FitEpochs(), arguments={})
    timer: Any = SimpleNamespace(ends=[])
    tracing: Any = SimpleNamespace(count=3, seconds=math.pi)
    program.read_facts(mine, hook, timer, tracing)
    assert (mine.facts.total_steps, mine.facts.traces) == (None, 3)
    assert [note.text for note in mine.sent] == ["total_steps failed: ValueError: total_steps is wrong"]
