"""Observes sessions of `tf.compat.v1`. A call of `run` trains if what it fetches depends on an update of variables."""

from __future__ import annotations

import functools
import re
from typing import Any

from bench.worker.script.calls import Observation
from bench.worker.script.values import leaves

UPDATES = re.compile(r"^(Resource)?(Sparse)?Apply[A-Z]|^(Resource)?Scatter(Add|Sub)$")
"""Operations of optimizers that update variables."""


def observe(seen: Observation) -> None:
    """Count each outermost call of `Session.run` as a step."""
    kind = next(kind for kind in seen.tf.compat.v1.Session.__mro__ if "run" in vars(kind))
    original = kind.run
    known: dict[tuple[int, ...], bool] = {}

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
        key = tuple(sorted(map(id, operations)))
        if key not in known:
            known[key] = _updates(operations)
        kind_of_step: Any = "session-training" if known[key] else "session"
        detail = ",".join(sorted({operation.name for operation in operations}))[:200]
        seen.sink.step(seen.call(kind_of_step, "Session.run", detail), 1, returned, None)
        return returned

    kind.run = run


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


def _updates(operations: list[Any]) -> bool:
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
