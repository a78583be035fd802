"""What a step of a script changes is waited for, also if the script makes a new model."""

from __future__ import annotations

import contextlib
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from bench.model.recognition import StepSource
from bench.worker.script import watch
from bench.worker.script.calls import ScriptCall, Updated
from bench.worker.script.watch import Watch
from bench.worker.synchronize import Synchronizer

pytestmark = pytest.mark.once

TRAIN = ScriptCall("updates", "train_step", "train.py", 10)


def waited_for(models: list[Any], synchronous: bool) -> list[Any]:
    """Return the models that are waited for, if each step changes one of these."""
    found: list[Any] = []
    clock = SimpleNamespace(leave_out=lambda seconds: None)
    loop: Any = SimpleNamespace(finished=None, tick=lambda value, steps: None, clock=clock, in_block=False)
    target = StepSource(kind="updates", name="train_step", file="train.py", line=10, token=TRAIN.token, steps=0)
    watched = Watch(target, loop, found.append, None, synchronous, lambda: None)
    watched.asides = None
    for model in models:
        watched.step(TRAIN, 1, 0.5, model)
    return found


def test_a_new_model_is_waited_for_if_steps_may_still_run_when_their_calls_return() -> None:
    first, second = object(), object()
    models = [Updated([first]), Updated([first]), None, Updated([second]), Updated([second])]
    assert waited_for(models, synchronous=False) == [models[0], models[3]]
    assert waited_for(models, synchronous=True) == [models[0]]


def test_models_in_turn_are_waited_for_only_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MOST_MODELS", 3)
    models = [Variable(), Variable()] * 10
    assert len(waited_for(models, synchronous=False)) == 3


class Variable:
    """A variable or a model that a weak reference can follow."""


def test_a_model_of_keras_is_not_kept_alive_for_the_comparison_with_the_next_one() -> None:
    target = StepSource(kind="train-on-batch", name="train_step", file="train.py", line=10, token=TRAIN.token, steps=0)
    clock = SimpleNamespace(leave_out=lambda seconds: None)
    discarded: list[bool] = []
    loop: Any = SimpleNamespace(
        finished=None,
        tick=lambda value, steps: None,
        clock=clock,
        in_block=True,
        discard=lambda: discarded.append(True),
    )
    waited: list[int] = []
    watched = Watch(target, loop, lambda model: waited.append(id(model)), None, False, lambda: None)
    watched.asides = None
    model = Variable()
    seen = weakref.ref(model)
    for _ in range(2):
        watched.step(TRAIN, 1, 0.5, model)
    assert discarded == []
    del model
    assert seen() is None
    watched.step(TRAIN, 1, 0.5, Variable())
    assert (len(waited), discarded) == (2, [True])  # the device went on working while the clock stood still


def test_the_variables_of_a_model_are_let_go_when_the_next_one_is_waited_for() -> None:
    tf: Any = SimpleNamespace(
        function=lambda total, jit_compile: SimpleNamespace(total=total, get_concrete_function=lambda: None),
        device=lambda name: contextlib.nullcontext(),
    )
    synchronizer = Synchronizer(tf, "/GPU:0")
    models = [Updated([Variable()]), Updated([Variable()])]
    first = weakref.ref(models[0].trainable_variables[0])
    synchronizer.observe(models[0])
    synchronizer.observe(models.pop(0))
    assert first() is not None
    synchronizer.observe(models[0])
    assert first() is None
    assert synchronizer.model is models[0]
