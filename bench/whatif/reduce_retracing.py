"""The what-if `reduce-retracing`: Pass numbers that change as tensors, and let graphs accept other shapes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from bench.model.causes import RETRACING
from bench.model.facts import ReasonKind
from bench.model.step_parts import StepPart
from bench.whatif import Program

WORDS = "tensors for numbers that change, and graphs for other shapes"
CAUSE = RETRACING
ACTS_ON: frozenset[StepPart] = frozenset({"own loop", "dispatch", "computing"})
ADVICE = (
    "Pass numbers that change as tensors, with tf.constant. If shapes change, use @tf.function(reduce_retracing=True)."
)
TESTS_SUSPECT = True
MEASURES_FIX = True

REMOVED: tuple[ReasonKind, ...] = ("value", "shape")
"""The reasons for new graphs that this what-if removes."""

FEW = 5
"""Traces of a function up to which it is not traced again and again."""


def applies(program: Program) -> bool:
    """Return whether a function is traced again and again because a number or a shape changes."""
    traced = program.facts.retraced or []
    return any(t.count > FEW and t.reason is not None and t.reason.kind in REMOVED for t in traced if not t.is_call)


def change_tensorflow(tf: Any, on_changed: Callable[[], None]) -> None:
    """Relax the shapes of each `tf.function`, and pass numbers as tensors once they change from call to call."""
    kind = type(tf.function(lambda: None))
    original = kind.__call__

    @functools.wraps(original)
    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        if tf.inside_function():
            return original(function, *args, **kwargs)
        on_changed()
        function._reduce_retracing = True
        named: dict[int | str, Any] = dict(enumerate(args))
        named.update(kwargs)
        numbers = {key: value for key, value in named.items() if type(value) in (int, float)}
        latest, changing = function.__dict__.setdefault("devbench_numbers", ({}, set()))
        changing.update(key for key, value in numbers.items() if latest.get(key, value) != value)
        latest.update(numbers)
        named.update((key, tf.constant(numbers[key])) for key in changing if key in numbers)
        changed_kwargs = {name: named[name] for name in kwargs}
        return original(function, *(named[n] for n in range(len(args))), **changed_kwargs)

    kind.__call__ = call
