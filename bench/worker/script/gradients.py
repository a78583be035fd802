"""Observes eager gradients of scripts that change their variables themselves, without an optimizer.

A step is the first gradient of a tape by variables, outside other tapes. Only the scout sees whether the script then
changes these variables (`Scout.assigned`). If it does not, the gradients train nothing.
"""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from typing import Any

from bench.worker.script.calls import Observation, ScriptCall, Updated

ASSIGN = ("assign", "assign_add", "assign_sub")
"""The methods that change a variable."""


class Gradients:
    """Observes tapes, and the variables by which they differentiate.

    Args:
        seen: what the observers share.
        assigned: is called when a script changes a variable by which a tape has differentiated, with the line that
            computed the gradient. None if nobody wants to know.
    """

    def __init__(self, seen: Observation, assigned: Callable[[ScriptCall], None] | None) -> None:
        self._seen = seen
        self._used: weakref.WeakSet[Any] = weakref.WeakSet()
        self._first: list[weakref.ref[Any]] = []  # the first of the variables with each number
        self._number_of: dict[ScriptCall, int] = {}  # the number of the latest variables of each line
        self._latest: dict[int, ScriptCall] = {}  # the line that differentiated by a variable, by the variable's id
        self._patch_tape()
        if assigned is not None:
            self._patch_variable(assigned)

    def _patch_tape(self) -> None:
        kind, running = self._seen.tf.GradientTape, self._seen.running
        enter, leave, gradient = kind.__enter__, kind.__exit__, kind.gradient

        @functools.wraps(enter)
        def enter_tape(tape: Any) -> Any:
            self._used.discard(tape)  # it records anew
            running.tapes.append(id(tape))
            return enter(tape)

        @functools.wraps(leave)
        def leave_tape(tape: Any, *error: Any) -> Any:
            if id(tape) in running.tapes:
                running.tapes.remove(id(tape))
            return leave(tape, *error)

        @functools.wraps(gradient)
        def take_gradient(tape: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            others = [open_ for open_ in running.tapes if open_ != id(tape)]
            if running.differentiating or others or not self._seen.eager:
                return gradient(tape, target, *args, **kwargs)
            running.differentiating = True
            try:
                gradients = gradient(tape, target, *args, **kwargs)
            finally:
                running.differentiating = False
            self._computed(tape, target, args[0] if args else kwargs.get("sources"))
            return gradients

        kind.__enter__, kind.__exit__, kind.gradient = enter_tape, leave_tape, take_gradient

    def _patch_variable(self, assigned: Callable[[ScriptCall], None]) -> None:
        from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable, ResourceVariable

        def observed(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def assign(variable: Any, *args: Any, **kwargs: Any) -> Any:
                call = self._latest.get(id(variable))
                if call is not None and not self._seen.running.applying:
                    assigned(call)
                return original(variable, *args, **kwargs)

            return assign

        for kind in (BaseResourceVariable, ResourceVariable):  # each has methods of its own
            for name in ASSIGN:
                if name in vars(kind):
                    setattr(kind, name, observed(vars(kind)[name]))

    def _computed(self, tape: Any, target: Any, sources: Any) -> None:
        """Take note of a gradient. Only the first one of a tape is a step."""
        seen = self._seen
        variables = [source for source in seen.tf.nest.flatten(sources) if hasattr(source, "assign")]
        if not variables or tape in self._used:
            return
        self._used.add(tape)
        line = seen.call("gradients", "gradient")
        call = seen.call("gradients", "gradient", self._number(line, variables[0]))
        self._latest.update({id(getattr(variable, "_value", variable)): call for variable in variables})
        seen.sink.step(call, 1, target, Updated(variables) if seen.sink.awaits_start else None)

    def _number(self, line: ScriptCall, variable: Any) -> str:
        """Return the number of the variables by which a tape differentiates, known by the first of them.

        Variables that take the place of some that no longer exist have the same number: the script makes a new model
        for each of several trainings.
        """
        for number, reference in enumerate(self._first):
            if reference() is variable:
                self._number_of[line] = number
                return str(number)
        gc.collect()  # a model refers to itself, so only a collection frees it
        number = self._number_of.get(line, len(self._first))
        if number < len(self._first) and self._first[number]() is not None:
            number = len(self._first)
        self._first[number : number + 1] = [weakref.ref(variable)]
        self._number_of[line] = number
        return str(number)
