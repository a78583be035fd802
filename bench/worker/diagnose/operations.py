"""How much a step computes and moves: floating-point operations, bytes, and products whose sides do not fill tiles."""

from __future__ import annotations

import re
from typing import Any

from bench.model.facts import Products
from bench.worker.batches import batches
from bench.worker.loops import python_step, signature
from bench.worker.rig import Rig

VARIABLE_UPDATES = re.compile(r"Resource.*Apply|Assign.*VariableOp")
"""Operations that change a variable."""

PRODUCTS = re.compile(r"MatMul|Conv\dD")

TILE = 8
"""A side that is a multiple of this fills a tile of a tensor core (NVIDIA: Deep Learning Performance Guide)."""

EXAMPLES = 5
"""Maximum number of products with other sides that are listed."""

NO_DATA = ("resource", "variant", "string")
"""Dtypes whose size is unknown or does not count."""


def count(rig: Rig) -> None:
    """Read the facts `flops_formula`, `flops_per_step`, `bytes_per_step` and `products`.

    The step is traced again for this. The graph is not optimized, so TensorFlow's count may be higher than what runs.
    """
    tf = rig.tf
    rig.facts.flops_formula = float(rig.call("flops")) if rig.has("flops") else None
    example = rig.state.example
    if example is None and (rig.has("step") or rig.compiled):
        example = next(batches(rig))
    if example is None:
        return
    with tf.device(rig.ctx.device):
        function = tf.function(python_step(rig))  # it keeps the step's own variables alive
        concrete = _flat(tf, function, signature(tf, example))
    graph = concrete.graph
    rig.facts.bytes_per_step = least_bytes(concrete)
    rig.facts.products = products(graph)
    options = tf.compat.v1.profiler.ProfileOptionBuilder.float_operation()
    options["output"] = "none"
    profile = tf.compat.v1.profiler.profile(graph, options=options)
    rig.facts.flops_per_step = float(profile.total_float_ops)


def _flat(tf: Any, function: Any, arguments: list[Any]) -> Any:
    """Return the concrete function with the operations of the functions that it calls, which are else hidden in calls.

    A function that AutoGraph must convert stays a call.

    Args:
        tf: TensorFlow.
        function: a `tf.function`.
        arguments: its arguments, or their shapes and dtypes.
    """
    eager = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)  # a `tf.function` that another one calls is then plain Python
    try:
        return function.get_concrete_function(*arguments)
    except Exception:
        tf.config.run_functions_eagerly(eager)
        return function.get_concrete_function(*arguments)
    finally:
        tf.config.run_functions_eagerly(eager)


def least_bytes(concrete: Any) -> float:
    """Return the number of bytes that a step must move at least.

    Each argument and each result counts once. Each variable counts once, or twice if the step changes variables.

    Args:
        concrete: the step's concrete function.
    """
    graph = concrete.graph
    tensors = [t for t in [*graph.inputs, *graph.outputs] if t.dtype.name not in NO_DATA]
    moved_bytes = sum((tensor.shape.num_elements() or 0) * tensor.dtype.size for tensor in tensors)
    variables = sum(variable.shape.num_elements() * variable.dtype.size for variable in graph.variables)
    updates = any(VARIABLE_UPDATES.search(op.type) for op in graph.get_operations())
    return float(moved_bytes + variables * (2 if updates else 1))


def products(graph: Any) -> Products:
    """Count the matrix products and convolutions of a step, and those with sides that do not fill a tensor core's tile.

    Args:
        graph: the graph of a step, traced for the shapes of an example.
    """
    operations = [op for op in graph.get_operations() if PRODUCTS.search(op.type)]
    odd: dict[str, list[int]] = {}
    for operation in operations:
        sides = [size for tensor in operation.inputs[:2] for size in (tensor.shape.as_list() or [])[-2:] if size]
        if uneven := sorted({size for size in sides if size % TILE}):
            odd[operation.name] = uneven
    return Products(count=len(operations), odd=len(odd), examples=dict(list(odd.items())[:EXAMPLES]))
