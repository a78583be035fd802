"""What an explanation reads from a program's own steps: reads of the device, eager operations, float64, Python calls.

A generator is begun once more and a few of its steps are watched, long after anything was timed: watching makes
TensorFlow slow. Graphs are those that the program traced. Every finding has the line of the program's own file that
it comes from, where there is one. Worker's side only.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from bench.model.facts import EagerOperations, Facts, Float64, GraphOperations, HostReads, Products

STEPS = 5
MOST = 5
"""Lines that are told of each kind."""

PRODUCTS = re.compile(r"MatMul|Conv\dD")
TILE = 8
"""Sides of products that are multiples of this fill a tensor core's tile (NVIDIA: Deep Learning Performance Guide)."""

PYTHON_OPS = ("PyFunc", "EagerPyFunc", "PyFuncStateless")
FREE = ("Placeholder", "Const", "Cast", "Identity", "NoOp", "ReadVariableOp", "Arg", "_Arg", "_Retval")
"""Operations whose float64 costs nothing worth telling."""

WHOLE = re.compile(r"(Add(V2)?|Sub|Mul|Neg|Abs|Square|Maximum|Minimum|FloorDiv|FloorMod|Sum|Prod|Max|Min|Cumsum)$")
"""Arithmetic that TensorFlow keeps in host memory for int32, wherever it is placed (tensorflow#16106)."""

MANY = 1024
"""Numbers; shapes and counters have fewer."""


def of_steps(facts: Facts, tf: Any, begin: Callable[[], Iterator[Any]], file: str) -> None:
    """Facts `host_reads` and `eager`, from a few steps of the program's own generator.

    Args:
        facts: where to put them; they stay None if the program is shorter than that.
        tf: TensorFlow.
        begin: makes the program's generator of steps.
        file: the program's own file, whose lines are told.
    """
    steps = begin()
    warm = len(list(islice(steps, 2)))  # the first may trace
    reads: Counter[int] = Counter()
    eager: Counter[tuple[str, int]] = Counter()
    with _reads(tf, lambda: reads.update([line_in(file)])), _eager(lambda op: eager.update([(op, line_in(file))])):
        count = len(list(islice(steps, STEPS)))
    if warm < 2 or not count:
        return
    facts.host_reads = HostReads(per_step=reads.total() / count, lines=_lines(reads))
    facts.eager = EagerOperations(
        per_step=eager.total() / count,
        lines=_lines(Counter({line: sum(n for (_, at), n in eager.items() if at == line) for _, line in eager})),
        operations=[op for op, _ in Counter({op: n for (op, _), n in eager.items()}).most_common(MOST)],
    )


def of_graphs(facts: Facts, graphs: Iterable[Any], file: str) -> None:
    """Facts `float64`, `int32` and `python`, from traced graphs."""
    wide: Counter[int] = Counter()
    whole: Counter[int] = Counter()
    python: Counter[int] = Counter()
    arguments = 0
    for operation in (op for graph in graphs for op in graph.get_operations()):
        if operation.type in PYTHON_OPS:
            python.update([traced_in(operation, file)])
        if WHOLE.match(operation.type) and any(map(_many_whole, operation.outputs)):
            whole.update([traced_in(operation, file)])
        if not any(output.dtype.name == "float64" for output in operation.outputs):
            continue
        arguments += operation.type == "Placeholder"
        if operation.type not in FREE:
            wide.update([traced_in(operation, file)])
    facts.float64 = Float64(operations=wide.total(), arguments=arguments, lines=_lines(wide))
    facts.int32 = GraphOperations(operations=whole.total(), lines=_lines(whole))
    facts.python = GraphOperations(operations=python.total(), lines=_lines(python))


def _many_whole(tensor: Any) -> bool:
    """Whether a tensor holds int32 numbers, and more than shapes and counters do, or as many as a batch has."""
    if tensor.dtype.name != "int32" or tensor.shape.rank in (None, 0):
        return False
    return bool((tensor.shape.num_elements() or MANY) >= MANY)


def of_products(graph: Any) -> Products:
    """Matrix products and convolutions of a step, and those with a side that a tensor core's tile does not fill.

    Args:
        graph: of one step, with the shapes of its example.
    """
    found = [op for op in graph.get_operations() if PRODUCTS.search(op.type)]
    odd: dict[str, list[int]] = {}
    for operation in found:
        sides = [size for tensor in operation.inputs[:2] for size in (tensor.shape.as_list() or [])[-2:] if size]
        if uneven := sorted({size for size in sides if size % TILE}):
            odd[operation.name] = uneven
    return Products(count=len(found), odd=len(odd), examples=dict(list(odd.items())[:MOST]))


def line_in(file: str) -> int:
    """The line of a file that is being executed, the innermost; 0 where none is."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == file:
            return int(frame.f_lineno)
        frame = frame.f_back
    return 0


def traced_in(operation: Any, file: str) -> int:
    """The line of a file that an operation of a graph was made in; 0 where none was."""
    for frame in reversed(list(operation.traceback or ())):
        if frame.filename == file:
            return int(frame.lineno)
    return 0


def _lines(counted: Counter[int]) -> list[int]:
    return sorted(line for line, _ in counted.most_common(MOST) if line)


@contextmanager
def _reads(tf: Any, told: Callable[[], None]) -> Iterator[None]:
    """Tells of each tensor that Python reads the number of: `.numpy()`, float(), bool(), np.asarray()."""
    from tensorflow.python.framework import ops

    tensorflow = str(Path(tf.__file__).parent)
    base = next(kind for kind in ops.EagerTensor.__mro__ if "_numpy" in vars(kind))
    plain = base._numpy

    home = base._numpy.__code__.co_filename

    def read(tensor: Any) -> Any:
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename == home:
            frame = frame.f_back
        if not frame.f_code.co_filename.startswith(tensorflow):  # what TensorFlow reads for itself is not the program's
            told()
        return plain(tensor)

    base._numpy = read
    try:
        yield
    finally:
        base._numpy = plain


@contextmanager
def _eager(told: Callable[[str], None]) -> Iterator[None]:
    """Tells of each operation that runs eagerly; a call of a traced function is one of them and is left out."""
    from tensorflow.python.framework import op_callbacks

    def ran(op_type: Any, inputs: Any, attrs: Any, outputs: Any, op_name: Any = None, graph: Any = None) -> None:
        name = op_type.decode() if isinstance(op_type, bytes) else str(op_type)
        if graph is None and not name.startswith("__") and "PartitionedCall" not in name:
            told(name)

    op_callbacks.add_op_callback(ran)
    try:
        yield
    finally:
        op_callbacks.remove_op_callback(ran)
