"""The what-if `reduce-retracing`: Pass numbers that change as tensors, and let graphs accept other shapes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from bench.model.causes import RETRACING
from bench.model.facts import TraceReason
from bench.model.step_parts import StepPart
from bench.whatif import Program

WORDS = "tensors for numbers that change, and graphs for other shapes"
CAUSE = RETRACING
ACTS_ON: frozenset[StepPart] = frozenset({"own loop", "dispatch", "computing"})
ADVICE = (
    "Pass numbers that change as tensors, with tf.constant. If shapes change, use @tf.function(reduce_retracing=True)."
)
TESTS_SUSPECT = True
REFUTED = "If shapes change, pad batches to a few lengths."
MEASURES_FIX = True

FEW = 5
"""Traces of a function, or values of a number, up to which it does not change again and again."""


def applies(program: Program) -> bool:
    """Return whether a function is traced again and again because a number or a shape changes."""
    traced = program.facts.retraced or []
    return any(t.count > FEW and t.reason is not None and removes(t.reason) for t in traced if not t.is_call)


def removes(reason: TraceReason) -> bool:
    """Return whether this what-if removes a reason for new graphs: a shape, or a number that is an argument itself."""
    is_number = all(map(NUMBER.fullmatch, (reason.before, reason.after))) and "[" not in reason.argument
    return reason.kind == "shape" or (reason.kind == "value" and is_number)


NUMBER = re.compile(r"-?[0-9.]+(e[-+]?[0-9]+)?")
"""A number as `repr` writes it."""


def change_tensorflow(tf: Any, on_changed: Callable[[], None]) -> None:
    """Relax the shapes of each `tf.function`, and pass numbers as tensors once they have changed again and again.

    Functions with an input signature stay as they are, because it decides what their arguments become.
    """
    kind = type(tf.function(lambda: None))
    original = kind.__call__

    @functools.wraps(original)
    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        if tf.inside_function() or getattr(function, "input_signature", None) is not None:
            return original(function, *args, **kwargs)
        if not function._reduce_retracing:
            function._reduce_retracing = True
            on_changed()
        named: dict[int | str, Any] = dict(enumerate(args))
        named.update(kwargs)
        values = function.__dict__.setdefault("devbench_numbers", {})  # the numbers so far, by argument
        for key, value in named.items():
            if type(value) in (int, float):
                seen = values.setdefault(key, set())
                if len(seen) <= FEW:
                    seen.add(value)
                else:
                    on_changed()
                    named[key] = tf.constant(value)
        return original(function, *(named[n] for n in range(len(args))), **{name: named[name] for name in kwargs})

    kind.__call__ = call
