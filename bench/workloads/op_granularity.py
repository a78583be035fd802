"""Add or multiply 10×10 matrices a million times, one operation per call or many in one graph.

From "Why is TensorFlow performance poor on the GPU?" (January 2025), example 3. The article makes one call per
operation, which it calls fine-grained. Running the same operations in one graph shows what the calls cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, Field

from bench.workloads import Context

CASES = {
    "add": {"op": "add"},
    "matmul": {"op": "matmul"},
    "add-graph": {"op": "add", "loop": "step"},
    "matmul-graph": {"op": "matmul", "loop": "step"},
}
NOT_DTYPES = dict.fromkeys(
    ("mixed_float16", "mixed_bfloat16"), "it has no Keras layers, and mixed policies affect only those"
)
NOTES = (
    "A step runs as many operations as the parameter `operations` says. Divide the step by that number to get the time "
    "of one operation.",
    "The article never uses its results, so its GPU may still be computing when the clock stops. Here, a block of "
    "steps ends when the last result has arrived.",
    "In the graph, each operation needs the result of the one before, so none can be merged, hoisted or run in "
    "parallel. Each iteration of the graph's loop also counts and compares, which is part of the time.",
)


class Params(BaseModel):
    """The article's parameters."""

    op: Literal["add", "matmul"] = Field("add", description="the operation")
    size: int = Field(10, ge=1, le=16_384, description="rows and columns of each matrix")
    operations: int = Field(1_000, ge=1, le=10_000_000, description="operations per step")
    iterations: int = Field(1_000_000, ge=1, le=10**12, description="operations in total")


def inputs(p: Params, ctx: Context) -> Any:
    """Return two (size, size) matrices, float32, standard normal; for matmul the second one is orthogonal.

    Products with an orthogonal matrix preserve the norm, so a chain of them neither overflows nor vanishes.
    """
    import numpy as np

    first, second = ctx.rng.standard_normal((2, p.size, p.size), dtype="float32")
    if p.op == "matmul":
        second = np.linalg.qr(second)[0].astype("float32")
    return first, second


def step(p: Params) -> Any:
    """Return a function that runs all operations of a step in one graph, each on the result of the one before."""
    import tensorflow as tf

    def operate(value: Any, other: Any) -> Any:
        return value + other if p.op == "add" else tf.matmul(value, other)

    def chain(first: Any, second: Any) -> Any:
        def body(index: Any, value: Any) -> Any:
            return index + 1, operate(value, second)

        start = (tf.constant(0), first)
        return tf.while_loop(lambda index, _: index < p.operations, body, start, parallel_iterations=1)[1]

    return chain


def as_written(p: Params, inputs: Any) -> Iterator[Any]:
    """Call the same operation on the same two tensors again and again, as in the article."""
    import tensorflow as tf

    first, second = map(tf.constant, inputs)
    result = first
    while True:
        if p.op == "add":
            for _ in range(p.operations):
                result = first + second
        else:
            for _ in range(p.operations):
                result = tf.matmul(first, second)
        yield result


def total_steps(p: Params) -> int:
    """Return the article's million operations, divided into steps."""
    return math.ceil(p.iterations / p.operations)


def flops(p: Params) -> float:
    """Return size² additions, or size³ multiplications and additions, per operation."""
    return float(p.operations) * (p.size**2 if p.op == "add" else 2 * p.size**3)
