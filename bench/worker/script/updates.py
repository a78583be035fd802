"""Observes custom training loops: updates by optimizers, run eagerly or in a `tf.function`, and other functions.

An eager update is seen where it happens. An update in a graph is seen when the graph is traced: the outermost
`tf.function` that is running then is marked, and each of its later calls is a step. If a call may run several updates,
they are counted by the optimizer's own counter.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from bench.worker.diagnose.placement import call_from_new_function
from bench.worker.script.calls import Observation, ScriptCall, Updated
from bench.worker.script.eager_steps import EagerSteps

GRADIENTS = {"apply": "grads", "apply_gradients": "grads_and_vars"}
"""The first parameter of each method that updates variables."""

UPDATED = "_devbench_updated"
"""Attribute of a `tf.function` that updates variables: the `Updated` with its variables."""


class Updates:
    """Observes optimizers and functions.

    Args:
        seen: what the observers share.
    """

    def __init__(self, seen: Observation) -> None:
        self._seen = seen
        self._function: Any = None  # the outermost function that is running
        self._in_functions: weakref.WeakKeyDictionary[Any, list[tuple[Any, int]]] = weakref.WeakKeyDictionary()
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # the numbered optimizers, so that no later one gets the id of an earlier one
        self._loss: Any = None
        self.eager_steps = EagerSteps(seen)
        self._graph_steps: dict[str, ScriptCall] = {}  # eager loops whose step became a graph, by the function's name
        self._applying = 0
        for kind, method in _update_methods(seen.tf):
            setattr(kind, method, self._apply(getattr(kind, method), method))
        self._patch_tape()
        self._patch_function()

    def run_as_graph(self, target: str, graph: Callable[[Any], Any]) -> None:
        """Replace the eager step of a loop by a function, as soon as the step is known.

        Args:
            target: token of the loop.
            graph: makes the function from the eager step.
        """

        def change(call: ScriptCall, function: Any) -> Any:
            if call.token != target:
                return function
            self._graph_steps[function.__name__] = call
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
                self._loss = target
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
            self._applying += 1
            try:
                returned = original(optimizer, grads, *rest, **kwargs)
            finally:
                self._applying -= 1
            if self._applying:  # within a wrapping optimizer, such as one that scales the loss
                return returned
            if seen.eager:
                changed = Updated(_variables(optimizer, method, grads, rest, kwargs))
                call = seen.call("updates", type(optimizer).__name__, self._number(optimizer))
                loss, self._loss = self._loss, None
                seen.arguments = None
                self.eager_steps.updated(call)
                seen.sink.step(call, 1, changed if loss is None else loss, changed)
            elif self._function is not None and not seen.tf.executing_eagerly():
                if seen.exact:
                    self._traced(optimizer)
                variables = _variables(optimizer, method, grads, rest, kwargs)
                known = vars(self._function).setdefault(UPDATED, Updated([]))
                known.trainable_variables += [
                    v for v in variables if all(v is not k for k in known.trainable_variables)
                ]
            return returned

        return apply

    def _traced(self, optimizer: Any) -> None:
        """Remember that the running function updates with an optimizer, and how many updates the optimizer has made."""
        counts = self._in_functions.setdefault(self._function, [])
        if all(optimizer is not other for other, _ in counts):
            with self._seen.tf.init_scope():
                counts.append((optimizer, _iterations(optimizer)))

    def _number(self, optimizer: Any) -> str:
        """Return the number of an optimizer. They are numbered in the order in which the script first uses them."""
        if id(optimizer) not in self._numbers:
            self._numbers[id(optimizer)] = len(self._numbers)
            self._kept.append(optimizer)
        return str(self._numbers[id(optimizer)])

    def _patch_function(self) -> None:
        """Observe each call. What runs in every step is short. Of TensorFlow, it calls only what reads a flag."""
        kind, seen = type(self._seen.tf.function(lambda: None)), self._seen
        original = kind.__call__

        @functools.wraps(original)
        def devbench_call(function: Any, /, *args: Any, **kwargs: Any) -> Any:
            if seen.depth or not seen.thread.is_eager or seen.tf.config.functions_run_eagerly():
                return original(function, *args, **kwargs)
            if seen.sink.awaits_start:
                seen.sink.starting("function")
            before = self._counts(function) if seen.exact else []
            seen.depth, self._function = 1, function
            try:
                if seen.checking:
                    returned = call_from_new_function(seen.tf, original, function, *args, **kwargs)
                else:
                    returned = original(function, *args, **kwargs)
            finally:
                seen.depth, self._function = 0, None
            seen.arguments = args, kwargs
            name = getattr(function, "__name__", "function")
            changed = vars(function).get(UPDATED)
            if changed is None:
                seen.sink.step(seen.call("function", name), 1, returned, None)
            else:
                step = self._graph_steps.get(name) or seen.call("updates", name)
                steps = self._steps(function, before) if seen.exact else 1
                seen.sink.step(step, steps, changed if returned is None else returned, changed)
            return returned

        kind.__call__ = devbench_call

    def _counts(self, function: Any) -> list[int]:
        """Return how many updates each optimizer of a function has made."""
        return [_iterations(optimizer) for optimizer, _ in self._in_functions.get(function, ())]

    def _steps(self, function: Any, before: list[int]) -> int:
        """Return the steps that a call of a function ran: the fewest updates by one of its optimizers, at least 1.

        Args:
            function: the function.
            before: the updates that each optimizer had made before the call.
        """
        traced = [count for _, count in self._in_functions[function]]
        starts = before + traced[len(before) :]  # the call itself traced the others
        made = [end - start for start, end in zip(starts, self._counts(function), strict=True)]
        return min((count for count in made if count > 0), default=1)


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


def _iterations(optimizer: Any) -> int:
    """Return how many updates an optimizer has made. 0 if it does not count."""
    try:
        return int(optimizer.iterations.numpy())
    except Exception:  # it does not count, or its counter is not there yet
        return 0
