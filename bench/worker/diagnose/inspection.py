"""Facts about a program's own steps: reads of the device, eager operations, dtypes, Python calls.

A generator is started once more and a few of its steps are observed, after everything was timed: observing makes
TensorFlow slow. Graphs are those that the program traced. Each fact names lines of the program's own file, if it comes
from there. Worker's side only.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from bench.model.facts import WHOLE_DATA_CALLS, EagerOperations, Facts, Float64, GraphOperations, HostReads
from bench.worker.frames import call_in, library_folders, line_in

WARM_UP = 2
"""Steps before those that are observed. The first one may trace."""

STEPS = 5
"""Steps that are observed."""

MAX_NAMES = 5
"""Maximum number of lines, or of types of operations, in a fact."""

PYTHON_CALLS = ("PyFunc", "EagerPyFunc", "PyFuncStateless")

FREE = ("Placeholder", "Const", "Cast", "Identity", "NoOp", "ReadVariableOp", "Arg", "_Arg", "_Retval")
"""Operations whose cost in float64 is negligible."""

INT32_ARITHMETIC = re.compile(
    r"(Add(V2)?|Sub|Mul|Neg|Abs|Square|Maximum|Minimum|FloorDiv|FloorMod|Sum|Prod|Max|Min|Cumsum)$"
)
"""Arithmetic that TensorFlow keeps in host memory for int32, wherever it is placed (tensorflow#16106)."""

MANY = 1024
"""Elements of a tensor. Shapes and counters have fewer."""


def read_steps(facts: Facts, tf: Any, start: Callable[[], Iterator[Any]], file: str) -> None:
    """Read the facts `host_reads` and `eager` from a few steps of the program's own generator.

    Args:
        facts: where to put them. They stay None if the program is too short.
        tf: TensorFlow.
        start: starts the program's generator of steps.
        file: the program's own file, whose lines are named.
    """
    steps = start()
    warmed_up = len(list(islice(steps, WARM_UP)))
    reads: Counter[int] = Counter()
    eager: Counter[tuple[str, int]] = Counter()

    def report_operation(op: str) -> None:
        line, called = call_in(file)
        if called not in WHOLE_DATA_CALLS:  # what Keras does around a data set is not the program's step
            eager.update([(op, line)])

    with (
        _host_reads(tf, file, lambda: reads.update([line_in(file)])),
        _eager_operations(report_operation),
    ):
        count = len(list(islice(steps, STEPS)))
    if warmed_up < WARM_UP or not count:
        return
    facts.host_reads = HostReads(per_step=reads.total() / count, lines=_lines(reads))
    by_line: Counter[int] = Counter()
    by_type: Counter[str] = Counter()
    for (op, line), number in eager.items():
        by_line[line] += number
        by_type[op] += number
    facts.eager = EagerOperations(
        per_step=eager.total() / count,
        lines=_lines(by_line),
        operations=[op for op, _ in by_type.most_common(MAX_NAMES)],
    )


def read_graphs(facts: Facts, graphs: Iterable[Any], file: str) -> None:
    """Read the facts `float64`, `int32` and `python` from traced graphs.

    Args:
        facts: where to put them.
        graphs: the graphs.
        file: the program's own file, whose lines are named.
    """
    float64: Counter[int] = Counter()
    int32: Counter[int] = Counter()
    python: Counter[int] = Counter()
    arguments = 0
    for operation in (op for graph in graphs for op in graph.get_operations()):
        if operation.type in PYTHON_CALLS:
            python.update([traced_in(operation, file)])
        if INT32_ARITHMETIC.match(operation.type) and any(map(_is_large_int32, operation.outputs)):
            int32.update([traced_in(operation, file)])
        if not any(output.dtype.name == "float64" for output in operation.outputs):
            continue
        arguments += operation.type == "Placeholder"
        if operation.type not in FREE:
            float64.update([traced_in(operation, file)])
    facts.float64 = Float64(operations=float64.total(), arguments=arguments, lines=_lines(float64))
    facts.int32 = GraphOperations(operations=int32.total(), lines=_lines(int32))
    facts.python = GraphOperations(operations=python.total(), lines=_lines(python))


def _is_large_int32(tensor: Any) -> bool:
    """Whether a tensor holds int32 numbers, and more of them than shapes and counters do, or an unknown number."""
    if tensor.dtype.name != "int32" or tensor.shape.rank in (None, 0):
        return False
    return bool((tensor.shape.num_elements() or MANY) >= MANY)


def traced_in(operation: Any, file: str) -> int:
    """Return the line of a file that made an operation of a graph. 0 if the file did not make it."""
    for frame in reversed(list(operation.traceback or ())):
        if frame.filename == file:
            return int(frame.lineno)
    return 0


def _lines(counts: Counter[int]) -> list[int]:
    return sorted(line for line, _ in counts.most_common(MAX_NAMES) if line)


@contextmanager
def _host_reads(tf: Any, file: str, report: Callable[[], None]) -> Iterator[None]:
    """Report each tensor that Python reads the number of: by `.numpy()`, float(), bool() or np.asarray()."""
    from tensorflow.python.framework import ops

    tensorflow, *others = library_folders()
    keras = others[0] if others else tensorflow
    base = next(kind for kind in ops.EagerTensor.__mro__ if "_numpy" in vars(kind))
    original = base._numpy
    own_file = original.__code__.co_filename

    def read(tensor: Any) -> Any:
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename == own_file:
            frame = frame.f_back
        reader = frame.f_code.co_filename
        # TensorFlow's own reads do not count. Keras reads what a call for a whole data set returns.
        own = reader.startswith(tensorflow) or (reader.startswith(keras) and call_in(file)[1] in WHOLE_DATA_CALLS)
        if not own:
            report()
        return original(tensor)

    base._numpy = read
    try:
        yield
    finally:
        base._numpy = original


@contextmanager
def _eager_operations(report: Callable[[str], None]) -> Iterator[None]:
    """Report the type of each operation that runs eagerly, except calls of traced functions."""
    from tensorflow.python.framework import op_callbacks

    def on_operation(
        op_type: Any, inputs: Any, attrs: Any, outputs: Any, op_name: Any = None, graph: Any = None
    ) -> None:
        name = op_type.decode() if isinstance(op_type, bytes) else str(op_type)
        if graph is None and not name.startswith("__") and "PartitionedCall" not in name:
            report(name)

    op_callbacks.add_op_callback(on_operation)
    try:
        yield
    finally:
        op_callbacks.remove_op_callback(on_operation)
