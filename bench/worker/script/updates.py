"""Observes custom training loops: updates by optimizers, run eagerly or in a `tf.function`.

An eager update is seen where it happens. An update in a graph is seen when the graph is traced (`functions.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from bench.worker.script.calls import Observation, ScriptCall, Updated
from bench.worker.script.eager_steps import EagerSteps
from bench.worker.script.functions import Functions
from bench.worker.script.numbering import Numbering

GRADIENTS = {"apply": "grads", "apply_gradients": "grads_and_vars"}
"""The first parameter of each method that updates variables."""


class Updates:
    """Observes optimizers and functions.

    Args:
        seen: what the observers share.
    """

    def __init__(self, seen: Observation) -> None:
        self._seen = seen
        self.eager_steps = EagerSteps(seen)
        self._numbering = Numbering(self.eager_steps.forget_frames)
        for kind, method in _update_methods(seen.tf):
            setattr(kind, method, self._apply(getattr(kind, method), method))
        self._patch_tape()
        self._functions = Functions(seen)

    def run_as_graph(self, target: str, graph: Callable[[Any], Any]) -> None:
        """Replace the eager step of a loop by a function, as soon as the step is known.

        Args:
            target: token of the loop.
            graph: makes the function from the eager step.
        """

        def change(call: ScriptCall, function: Any) -> Any:
            if call.token != target:
                return function
            self._functions.graph_steps[function.__name__] = call
            return graph(function)

        self.eager_steps.change = change

    def _patch_tape(self) -> None:
        """Learn the loss of an eager step from the tape that computes its gradients, and when the step started."""
        kind, seen = self._seen.tf.GradientTape, self._seen
        enter, gradient = kind.__enter__, kind.gradient

        @functools.wraps(enter)
        def enter_tape(tape: Any) -> Any:
            if seen.eager:
                seen.sink.starting("tape")
            return enter(tape)

        @functools.wraps(gradient)
        def take_gradient(tape: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            if seen.eager:
                seen.running.loss = target
            return gradient(tape, target, *args, **kwargs)

        kind.__enter__, kind.gradient = enter_tape, take_gradient

    def _apply(self, original: Callable[..., Any], method: str) -> Callable[..., Any]:
        seen = self._seen

        @functools.wraps(original)
        def apply(optimizer: Any, /, *args: Any, **kwargs: Any) -> Any:
            if not args and GRADIENTS[method] not in kwargs:  # a wrong call, which Keras reports in its own words
                return original(optimizer, **kwargs)
            grads, *rest = args or [kwargs.pop(GRADIENTS[method])]
            if method == "apply_gradients":
                grads = list(grads)
            running = seen.running
            running.applying += 1
            try:
                returned = original(optimizer, grads, *rest, **kwargs)
            finally:
                running.applying -= 1
            if running.applying:  # within a wrapping optimizer, such as one that scales the loss
                return returned
            if seen.eager:
                changed = Updated(_variables(optimizer, method, grads, rest, kwargs))
                call = seen.call("updates", type(optimizer).__name__, self._number(optimizer))
                loss, running.loss = running.loss, None
                running.arguments = None
                self.eager_steps.updated(call)
                seen.sink.step(call, 1, changed if loss is None else loss, changed)
            else:
                self._functions.updates(optimizer, _variables(optimizer, method, grads, rest, kwargs))
            return returned

        return apply

    def _number(self, optimizer: Any) -> str:
        """Return the number of an optimizer."""
        number = self._numbering.known(optimizer)
        if number is None:
            number = self._numbering.add(optimizer, self._seen.call("updates", type(optimizer).__name__))
        return number


def _update_methods(tf: Any) -> Iterator[tuple[Any, str]]:
    """Yield each class that defines how an optimizer updates variables, with the name of the method."""
    kinds: dict[Any, str] = {}
    roots = [tf.keras.optimizers.Optimizer, tf.compat.v1.train.Optimizer]
    for parent, name in (("experimental", "Optimizer"), ("legacy", "Optimizer")):
        roots.append(getattr(getattr(tf.keras.optimizers, parent, None), name, None))
    roots.append(getattr(tf.keras.mixed_precision, "LossScaleOptimizer", None))
    roots.append(getattr(tf.keras.mixed_precision, "LossScaleOptimizerV3", None))
    for root in filter(None, roots):
        for kind in root.__mro__:
            for method in ("apply", "apply_gradients"):
                if method in vars(kind) and kind not in kinds:
                    kinds[kind] = method
    return iter(kinds.items())


def _variables(optimizer: Any, method: str, grads: Any, args: Any, kwargs: Any) -> list[Any]:
    """Return the variables that an update changes."""
    if method == "apply_gradients":
        return [variable for _, variable in grads]
    given = kwargs.get("trainable_variables") if "trainable_variables" in kwargs else next(iter(args), None)
    return list(given if given is not None else getattr(optimizer, "_trainable_variables", []))
