"""Observes calls of `tf.functions`: those that train a model, as parts of a training loop, and others.

An update in a graph is seen when the graph is traced: the outermost function that is running then is marked, and each
of its later calls is a step. If a call may run several updates, they are counted by the optimizer's own counter.
"""

from __future__ import annotations

import functools
import re
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bench.worker.diagnose.placement import call_from_new_function
from bench.worker.script.calls import Observation, ScriptCall, Updated
from bench.worker.script.running import CONCRETE

UPDATED = "_devbench_updated"
"""Attribute of a function that updates variables: the `Updated` with its variables."""

GRAPHS = "_devbench_graphs"
"""Attribute of a function that was traced: whether its graphs update variables, by the arguments that select one.

None if that depends on more than these arguments."""

NAMED = "_devbench_name"
"""Attribute of a concrete function that was made from a function: its name."""

NUMBERED = re.compile(rb"^(?:__inference_)?(.+?)(?:_\d+)?$")
"""The name of another concrete function. It contains the name of its Python function and a number, which may vary."""


class Functions:
    """Observes functions, and the concrete functions of scripts and of saved models.

    Args:
        seen: what the observers share.

    Attributes:
        graph_steps: eager loops whose step became a function, by its name.
    """

    def __init__(self, seen: Observation) -> None:
        self._seen = seen
        self._optimizers: weakref.WeakKeyDictionary[Any, list[tuple[Any, int | None]]] = weakref.WeakKeyDictionary()
        self._marks = 0  # how often an update was found in a graph that was being traced
        self.graph_steps: dict[str, ScriptCall] = {}
        kind = type(seen.tf.function(lambda: None))
        kind.__call__ = self._observed(kind.__call__)
        kind.get_concrete_function = self._tracing(kind.get_concrete_function)
        for concrete in _concrete_kinds(seen.tf):
            concrete.__call__ = self._observed(concrete.__call__, concrete=True)

    def updates(self, optimizer: Any, variables: list[Any]) -> None:
        """Take note that an optimizer updates variables in the functions that are being traced.

        Args:
            optimizer: the optimizer.
            variables: what it updates.
        """
        if self._seen.tf.executing_eagerly():
            return
        for function in self._seen.running.functions:
            self._add_optimizer(function, optimizer)
            _add_variables(function, variables)
            self._marks += 1

    def _add_optimizer(self, function: Any, optimizer: Any) -> None:
        """Remember that a function updates with an optimizer, and how many updates the optimizer has made."""
        counts = self._optimizers.setdefault(function, [])
        if all(optimizer is not other for other, _ in counts):
            with self._seen.tf.init_scope():
                counts.append((optimizer, _iterations(optimizer)))

    def _inherit(self, function: Any, part: Any) -> None:
        """Take note that a function calls another one, which may have been traced before."""
        changed = vars(part).get(UPDATED)
        if changed is None or part is function:
            return
        for optimizer, _ in self._optimizers.get(part, ()):
            self._add_optimizer(function, optimizer)
        _add_variables(function, changed.trainable_variables)
        self._marks += 1

    def _observed(self, original: Callable[..., Any], concrete: bool = False) -> Callable[..., Any]:
        """Observe each call. What runs in every step is short. Of TensorFlow, it calls only what reads a flag.

        Args:
            original: the method that calls a function.
            concrete: whether it calls concrete functions. They ignore `tf.config.run_functions_eagerly`.
        """
        seen, runs_eagerly = self._seen, self._seen.tf.config.functions_run_eagerly

        @functools.wraps(original)
        def devbench_call(function: Any, /, *args: Any, **kwargs: Any) -> Any:
            running = seen.running
            if running.depth or not seen.thread.is_eager:
                return self._nested(original, function, args, kwargs)
            if not concrete and runs_eagerly():
                return original(function, *args, **kwargs)
            if seen.sink.awaits_start:
                seen.sink.starting("function")
            updates = self._updates(function, args, kwargs)
            before = self._counts(function) if updates is None else []
            traces, marks = seen.traces(), self._marks
            running.depth = 1
            running.functions.append(function)
            try:
                if seen.checking:
                    call = _call_leaving_a_graph if concrete else call_from_new_function
                    returned = call(seen.tf, original, function, *args, **kwargs)
                else:
                    returned = original(function, *args, **kwargs)
            finally:
                running.depth = 0
                running.functions.clear()
            running.arguments = CONCRETE if concrete else (args, kwargs)
            name = name_of(function)
            changed = vars(function).get(UPDATED)
            if seen.traces() != traces and not seen.checking:
                found = _traced(function, args, kwargs, self._marks != marks)
                updates = None if found and seen.exact else found
            steps = self._steps(function, before) if updates is None else seen.steps * updates
            if changed is None or (not steps and _has_graphs_of_both_kinds(function)):
                seen.sink.step(seen.call("function", name), 1, returned, None)
            else:
                step = self.graph_steps.get(name) or seen.call("updates", name)
                seen.sink.step(step, steps, changed if returned is None else returned, changed)
            return returned

        return devbench_call

    def _nested(self, original: Callable[..., Any], function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function within an observed call. If a graph calls it, what it updates is updated by the graph."""
        running = self._seen.running
        running.functions.append(function)
        try:
            return original(function, *args, **kwargs)
        finally:
            running.functions.pop()
            if not self._seen.thread.is_eager:
                for outer in running.functions:
                    self._inherit(outer, function)

    def _tracing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Observe what a function updates while it is traced without a call, and mark the concrete function."""
        seen = self._seen

        @functools.wraps(original)
        def get_concrete_function(function: Any, /, *args: Any, **kwargs: Any) -> Any:
            running = seen.running
            running.depth += 1  # the trace may call functions to create variables
            running.functions.append(function)
            try:
                concrete = original(function, *args, **kwargs)
            finally:
                running.functions.pop()
                running.depth -= 1
            self._inherit(concrete, function)
            vars(concrete)[NAMED] = name_of(function)
            return concrete

        return get_concrete_function

    def _updates(self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | None:
        """Return whether a call of a function that updates variables does so. None if its counters must be read.

        A function may have graphs that do not, such as those that its argument `training=False` selects.
        """
        known = vars(function)[GRAPHS].get(_flags(args, kwargs)) if _has_graphs_of_both_kinds(function) else True
        return None if known and self._seen.exact else known

    def _counts(self, function: Any) -> list[int | None]:
        """Return how many updates each optimizer of a function has made. None for one that does not count."""
        return [_iterations(optimizer) for optimizer, _ in self._optimizers.get(function, ())]

    def _steps(self, function: Any, before: list[int | None]) -> int:
        """Return the steps that a call of a function ran: the fewest updates by one of its optimizers.

        It is 0 if the call only accumulated gradients. It is 1 if no optimizer counts, or if one that scales the loss
        may have left out an update whose gradients were not finite.

        Args:
            function: the function.
            before: the updates that each optimizer had made before the call.
        """
        traced = [count for _, count in self._optimizers.get(function, ())]
        starts = before + traced[len(before) :]  # the call itself traced the others
        pairs = zip(starts, self._counts(function), strict=True)
        made = [end - start for start, end in pairs if start is not None and end is not None]
        scales = any("LossScale" in type(optimizer).__name__ for optimizer, _ in self._optimizers.get(function, ()))
        return min((count for count in made if count > 0), default=0 if made and not scales else 1)


def _flags(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the arguments of a call that select what a graph does."""
    named = ((name, kwargs[name]) for name in sorted(kwargs))
    return tuple(each for each in [*enumerate(args), *named] if isinstance(each[1], (int, str, type(None))))


def _traced(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], updates: bool) -> bool:
    """Remember by the arguments of a call whether the graph that it traced updates variables. Return it."""
    graphs, flags = vars(function).setdefault(GRAPHS, {}), _flags(args, kwargs)
    graphs[flags] = updates if graphs.get(flags, updates) == updates else None
    return updates


def _has_graphs_of_both_kinds(function: Any) -> bool:
    """Whether some graphs of a function update variables, and others do not."""
    graphs = vars(function).get(GRAPHS, {})
    return (len(graphs) > 1 and len({*graphs.values()}) > 1) or None in graphs.values()


def _add_variables(function: Any, variables: list[Any]) -> None:
    known = vars(function).setdefault(UPDATED, Updated([])).trainable_variables
    known += [variable for variable in variables if all(variable is not other for other in known)]


def _iterations(optimizer: Any) -> int | None:
    """Return how many updates an optimizer has made. None if it does not count."""
    try:
        return int(optimizer.iterations.numpy())
    except Exception:  # it does not count, or its counter is not there yet
        return None


def _concrete_kinds(tf: Any) -> Iterator[Any]:
    """Yield each class of concrete functions that defines how they are called."""
    kinds = [tf.types.experimental.ConcreteFunction]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if "__call__" in vars(kind) and not getattr(kind.__call__, "__isabstractmethod__", False):
            yield kind


def name_of(function: Any) -> str:
    """Return the name of a function. A concrete function has that of its Python function, without its number."""
    name = getattr(function, "__name__", "") or vars(function).get(NAMED, "")
    if name:
        return str(name)
    name = getattr(function, "name", b"")
    match = NUMBERED.match(name if isinstance(name, bytes) else str(name).encode())
    return match[1].decode() if match else "function"


def _call_leaving_a_graph(tf: Any, original: Callable[..., Any], function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a concrete function. If XLA compiles it, the call leaves no graph, so a new `tf.function` makes it."""
    compiled = getattr(function, "function_def", None)
    if compiled is None or not compiled.attr["_XlaMustCompile"].b:
        return original(function, *args, **kwargs)
    return tf.function(lambda *args, **kwargs: original(function, *args, **kwargs))(*args, **kwargs)
