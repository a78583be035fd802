"""How many steps a call of a script's `tf.function` has, with a scripted TensorFlow."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from bench.worker.script.calls import Observation, ScriptCall
from bench.worker.script.functions import Functions

pytestmark = pytest.mark.once


class Sink:
    """Keeps what observers see."""

    awaits_start = False

    def __init__(self) -> None:
        self.steps: list[tuple[str, int]] = []

    def starting(self, what: str) -> None:
        """Do nothing."""

    def step(self, call: ScriptCall, steps: int, value: Any, model: Any) -> None:
        self.steps.append((call.kind, steps))


class Optimizer:
    """An optimizer that counts its updates, and how often they are read."""

    def __init__(self) -> None:
        self.made = self.reads = 0
        self.iterations = SimpleNamespace(numpy=self._read)

    def _read(self) -> int:
        self.reads += 1
        return self.made


class LossScaleOptimizer(Optimizer):
    """An optimizer that may leave out updates, so that its counter does not tell whether a call trains."""


class Program:
    """Functions that are traced once for each flag."""

    def __init__(self, exact: bool, steps: int = 1) -> None:
        program = self
        self.traces = 0
        self.tracing = False

        class Function:
            def __init__(self, body: Callable[..., Any]) -> None:
                self.__name__ = "step"
                self.body, self.graphs = body, set[object]()

            def __call__(self, x: object, training: bool = True) -> float:
                if training not in self.graphs:
                    self.graphs.add(training)
                    program.traces, program.tracing = program.traces + 1, True
                    self.body(training)
                    program.tracing = False
                program.run(training)
                return 0.5

            def get_concrete_function(self) -> None:
                """Do nothing."""

        self.run: Callable[[bool], object] = lambda training: None
        tf = SimpleNamespace(
            function=Function,
            config=SimpleNamespace(functions_run_eagerly=lambda: False),
            types=SimpleNamespace(experimental=SimpleNamespace(ConcreteFunction=type("Concrete", (), {}))),
            executing_eagerly=lambda: not program.tracing,
            init_scope=contextlib.nullcontext,
        )
        self.sink = Sink()
        self.seen = Observation(
            tf, self.sink, lambda path: path == __file__, (), exact=exact, steps=steps, traces=lambda: self.traces
        )
        self.seen.__dict__["thread"] = SimpleNamespace(is_eager=True)
        self.functions = Functions(self.seen)
        self.function = tf.function


@pytest.mark.parametrize("kind", [Optimizer, LossScaleOptimizer])
@pytest.mark.parametrize("exact", [True, False])
def test_a_function_with_a_flag_for_training_has_steps_only_if_it_trains(exact: bool, kind: type[Optimizer]) -> None:
    program, optimizer = Program(exact), kind()

    def run(training: bool) -> None:
        optimizer.made += training

    def body(training: bool) -> None:
        if training:
            program.functions.updates(optimizer, [])

    program.run = run
    step = program.function(body)
    for training in [True, True, False, False, True, False]:
        step(object(), training=training)
    counted = {True: ("updates", 1), False: ("function", 1)}
    assert program.sink.steps == [counted[each] for each in (True, True, False, False, True, False)]
    if not exact:
        assert optimizer.reads == 1  # when it was traced: reading waits for the device


def test_a_call_that_is_traced_again_for_the_placement_check_is_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    program, optimizer = Program(exact=False), Optimizer()
    step = program.function(lambda training: program.functions.updates(optimizer, []))

    def trace_again(tf: Any, original: Any, function: Any, *args: Any) -> float:
        program.traces += 1
        return 0.5

    monkeypatch.setattr("bench.worker.script.functions.call_from_new_function", trace_again)
    for program.seen.checking in (False, True, False):
        step(object())
    assert program.sink.steps == [("updates", 1)] * 3


def test_a_call_has_as_many_steps_as_the_scout_found() -> None:
    program, optimizer = Program(exact=False, steps=25), Optimizer()
    step = program.function(lambda training: program.functions.updates(optimizer, []))
    step(object())
    step(object())
    assert program.sink.steps == [("updates", 25)] * 2
    assert optimizer.reads == 1
