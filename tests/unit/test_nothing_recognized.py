"""The error of a script without steps: it says what was seen, and what to do."""

from __future__ import annotations

import pytest

from bench.model.recognition import StepSource
from bench.worker.script.calls import ScriptCall
from bench.worker.script.nothing_recognized import no_steps

pytestmark = pytest.mark.once

PREDICT = StepSource(kind="predict", name="predict", file="train.py", line=3, token="", steps=4)


def test_an_unknown_loop_number_is_answered_with_the_loops_of_the_script() -> None:
    loops = [PREDICT, PREDICT.model_copy(update={"steps": 1, "line": 9})]
    error = no_steps("train.py", loops, watch=3, reason="", state="it ended after 1.0 s")
    assert str(error) == "train.py has no loop number 3; it ended after 1.0 s"
    assert error.hint == "Its loops:\n1  4 steps: predict in train.py, line 3\n2  1 step: predict in train.py, line 9"


def test_a_script_without_steps_learns_whether_it_imported_tensorflow_and_what_was_seen() -> None:
    error = no_steps("train.py", [], watch=None, reason="it did not import TensorFlow", state="it ended after 1.0 s")
    assert str(error) == "no training step found in train.py; it ended after 1.0 s; it did not import TensorFlow"
    assert error.hint is not None
    assert "devbench run train.py -- ARGUMENTS" in error.hint


def test_calls_of_fit_that_ran_no_step_are_named() -> None:
    call = ScriptCall("fit", "fit", "train.py", 12)
    error = no_steps("train.py", [], watch=None, reason="", state="it ended after 3.0 s", fits=[(call, 3)])
    assert str(error).endswith("after 3.0 s; 3 calls of fit were seen (train.py, line 12), without a step")
    assert "initial_epoch" in (error.hint or "")
