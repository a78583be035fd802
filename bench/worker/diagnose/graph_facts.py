"""Facts about the graphs that the program traced: float64, int32 arithmetic, Python calls. Worker's side only.

Each fact names the lines of the program that made the operations.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from bench.model.facts import Facts, Float64, GraphOperations
from bench.worker.diagnose.named_lines import lines_of
from bench.worker.frames import SourceLine, Sources

PYTHON_CALLS = ("PyFunc", "EagerPyFunc", "PyFuncStateless")

FREE = ("Placeholder", "Const", "Cast", "Identity", "NoOp", "ReadVariableOp", "Arg", "_Arg", "_Retval")
"""Operations whose cost in float64 is negligible."""

INT32_ARITHMETIC = re.compile(
    r"(Add(V2)?|Sub|Mul|Neg|Abs|Square|Maximum|Minimum|FloorDiv|FloorMod|Sum|Prod|Max|Min|Cumsum)$"
)
"""Arithmetic that TensorFlow does in host memory for int32, wherever it is placed (tensorflow#16106)."""

MANY = 1024
"""Minimum number of elements of a large tensor. Shapes and counters have fewer."""


def read_graphs(facts: Facts, graphs: Iterable[Any], sources: Sources) -> None:
    """Read the facts `float64`, `int32` and `python` from traced graphs.

    Args:
        facts: where to put the facts.
        graphs: the graphs.
        sources: the program's own files, whose lines are named.
    """
    float64: Counter[SourceLine] = Counter()
    int32: Counter[SourceLine] = Counter()
    python: Counter[SourceLine] = Counter()
    arguments = 0
    # TensorFlow 2.10 empties graphs that nothing runs any more. In 2.21, a graph has no `__dict__`.
    whole = [graph for graph in graphs if getattr(graph, "__dict__", True)]
    for operation in (op for graph in whole for op in graph.get_operations()):
        if operation.type in PYTHON_CALLS:
            python.update([traced_in(operation, sources)])
        if INT32_ARITHMETIC.match(operation.type) and any(map(_is_large_int32, operation.outputs)):
            int32.update([traced_in(operation, sources)])
        if not any(output.dtype.name == "float64" for output in operation.outputs):
            continue
        arguments += operation.type == "Placeholder"
        if operation.type not in FREE:
            float64.update([traced_in(operation, sources)])
    facts.float64 = Float64(operations=float64.total(), arguments=arguments, **lines_of(float64))
    facts.int32 = GraphOperations(operations=int32.total(), **lines_of(int32))
    facts.python = GraphOperations(operations=python.total(), **lines_of(python))


def _is_large_int32(tensor: Any) -> bool:
    """Whether a tensor holds more int32 numbers than shapes and counters do. An unknown number counts as more."""
    if tensor.dtype.name != "int32" or tensor.shape.rank in (None, 0):
        return False
    return bool((tensor.shape.num_elements() or MANY) >= MANY)


def traced_in(operation: Any, sources: Sources) -> SourceLine:
    """Return the line of the program that made an operation of a graph. Line 0 if no line of the program made it."""
    for frame in reversed(list(operation.traceback or ())):
        if (name := sources.name(frame.filename)) is not None:
            return SourceLine(name, int(frame.lineno))
    return SourceLine("", 0)
