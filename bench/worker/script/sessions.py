"""Observes sessions of `tf.compat.v1`. A call of `run` trains if what it fetches depends on an update of variables."""

from __future__ import annotations

import functools
import re
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.worker.script.calls import Observation
from bench.worker.script.values import leaves

UPDATES = re.compile(r"^(Resource)?(Sparse)?Apply[A-Z]|^(Resource)?Scatter(Add|Sub)$")
"""Operations of optimizers that update variables."""

NUMBER = re.compile(r"_\d+(?=/|$)")
"""What TensorFlow adds to a name that a graph has already."""


def observe(seen: Observation) -> None:
    """Count each outermost call of `Session.run` as a step."""
    kind = next(kind for kind in seen.tf.compat.v1.Session.__mro__ if "run" in vars(kind))
    original = kind.run
    known: weakref.WeakKeyDictionary[Any, Fetches] = weakref.WeakKeyDictionary()

    @functools.wraps(original)
    def run(session: Any, fetches: Any, *args: Any, **kwargs: Any) -> Any:
        if seen.running.depth:
            return original(session, fetches, *args, **kwargs)
        seen.sink.starting("session")
        seen.running.depth = 1
        try:
            returned = original(session, fetches, *args, **kwargs)
        finally:
            seen.running.depth = 0
        operations = _operations(session, fetches)
        fetched = known.setdefault(session.graph, Fetches()).of(operations)
        kind_of_step: Any = "session-training" if fetched.trains else "session"
        seen.sink.step(seen.call(kind_of_step, "Session.run", fetched.text), 1, returned, None)
        return returned

    kind.run = run


@dataclass(frozen=True)
class Fetched:
    """What a call of `run` fetches.

    Attributes:
        names: the names of the operations.
        text: the same as a text.
        trains: whether the call updates variables.
        last: the number of the newest operation of the graph at the first such call.
    """

    names: frozenset[str]
    text: str
    trains: bool
    last: int


class Fetches:
    """What the calls of `run` fetch from a graph.

    A script may add operations to the graph before each call. If their names differ only in numbers from those of an
    earlier call, they are the same step.
    """

    def __init__(self) -> None:
        self._known: dict[frozenset[str], Fetched] = {}
        self._alike: dict[frozenset[str], list[Fetched]] = {}  # by the names without numbers

    def of(self, operations: Sequence[Any]) -> Fetched:
        """Return what a call fetches, from the operations."""
        names = frozenset(operation.name for operation in operations)
        found = self._known.get(names)
        if found is None:
            found = self._known[names] = self._new(names, operations)
        return found

    def _new(self, names: frozenset[str], operations: Sequence[Any]) -> Fetched:
        alike = self._alike.setdefault(frozenset(NUMBER.sub("", name) for name in names), [])
        for earlier in alike:
            if all(each.name in earlier.names or each._id > earlier.last for each in operations):
                return earlier
        graph = operations[0].graph if operations else None
        last = max(operation._id for operation in graph.get_operations()) if graph is not None else 0
        alike.append(Fetched(names, ",".join(sorted(names))[:200], _updates(operations), last))
        return alike[-1]


def _operations(session: Any, fetches: Any) -> list[Any]:
    """Return the operations that a call of `run` fetches."""
    operations = []
    for fetch in leaves(fetches):
        try:
            element = session.graph.as_graph_element(fetch)
        except (TypeError, ValueError, KeyError):
            continue
        operations.append(getattr(element, "op", element))
    return operations


def _updates(operations: Sequence[Any]) -> bool:
    """Whether one of the operations, or one that they depend on, updates variables."""
    waiting, reached = list(operations), set()
    while waiting:
        operation = waiting.pop()
        if operation.name in reached:
            continue
        reached.add(operation.name)
        if UPDATES.match(operation.type):
            return True
        waiting += [tensor.op for tensor in operation.inputs]
        waiting += operation.control_inputs
    return False
