"""What XLA spends on new shapes in the functions of a script, by the time of their calls."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bench.model.facts import Recompiled
from bench.worker.script import compiled_shapes
from bench.worker.script.compiled_shapes import CompiledShapes
from bench.worker.script.running import Running

pytestmark = pytest.mark.once

RUN, COMPILE = 0.01, 0.3
"""Seconds of a call, and of compiling for a new shape."""


class Script:
    """A script that calls a function. The clock and the function are scripted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, compiled: bool = True) -> None:
        self.now = 100.0
        script, seen = self, set[Any]()
        self.tracing: Any = SimpleNamespace(count=0, is_running=False)

        def train(*arguments: Any) -> None:
            pass

        class Function:
            _jit_compile = compiled
            python_function = staticmethod(train)

            def __call__(self, *arguments: Any) -> None:
                script.tracing.count += not seen
                shapes = tuple(argument.shape for argument in arguments)
                script.now += RUN + (COMPILE if shapes not in seen else 0.0)
                seen.add(shapes)

        self.function: Any = Function()
        self.line = train.__code__.co_firstlineno
        monkeypatch.setattr(compiled_shapes, "time", SimpleNamespace(perf_counter=lambda: self.now))
        nest = SimpleNamespace(flatten=lambda nested: [*nested[0], *nested[1].values()])
        tf: Any = SimpleNamespace(function=lambda python: self.function, nest=nest)
        tracing: Any = self.tracing
        self.compiled_shapes = CompiledShapes(tf, Running(), tracing)

    def run(self, lengths: list[int]) -> Recompiled | None:
        """Call the function with a label and with rows of these lengths."""
        for length in lengths:
            self.function(SimpleNamespace(shape=(8,)), SimpleNamespace(shape=(8, length)))
        return self.compiled_shapes.read(lambda path: "mine.py")


def test_new_shapes_take_what_a_call_with_a_known_shape_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch)
    found = script.run([1, *range(1, 11), *range(1, 11)])
    assert found is not None
    assert (found.function, found.file, found.line) == ("train", "mine.py", script.line)
    assert (found.shapes, found.calls) == (9, 20)
    assert found.seconds == pytest.approx(9 / 20 * COMPILE)
    assert (found.before, found.after) == ("(8, 9)", "(8, 10)")


@pytest.mark.parametrize(
    ("lengths", "compiled"), [([3] * 20, True), ([1, 2, 3, 4] * 5, True), (list(range(20)), False)]
)
def test_a_few_shapes_or_no_xla_are_nothing_to_report(
    lengths: list[int], compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Script(monkeypatch, compiled).run(lengths) is None
