"""Adds, or multiplies, 10×10 matrices a million times: one operation at a time, and many in one graph.

From "Why is TensorFlow performance poor on the GPU?" (January 2025), example 3, which does the first and calls it
fine-grained; the same number of operations in one graph is what it lacks to show the cost of a dispatch.
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
NOT_DTYPES = dict.fromkeys(("mixed_float16", "mixed_bfloat16"), "it has no Keras layers, which a mixed policy is of")
NOTES = (
    "A step is `operations` operations, so that it is longer than the clock's reading; divide by them for one.",
    "The article never uses what it computes, and its GPU may still be at work when its clock stops; here a block of "
    "steps ends when the last result has arrived.",
    "In the graph each operation needs the one before, so none can be merged, hoisted or run beside another; a turn "
    "of the graph's loop also counts and compares, which is part of the time.",
)


class Params(BaseModel):
    """The article's numbers."""

    op: Literal["add", "matmul"] = Field("add", description="the operation")
    size: int = Field(10, ge=1, le=16_384, description="rows and columns of each matrix")
    operations: int = Field(1_000, ge=1, le=10_000_000, description="operations a step")
    iterations: int = Field(1_000_000, ge=1, le=10**12, description="operations of the whole program")


def inputs(p: Params, ctx: Context) -> Any:
    """Two (size, size) float32 matrices: standard normal, but that for matmul the second is orthogonal.

    A chain of products with an orthogonal matrix keeps its length, so it neither overflows nor vanishes.
    """
    import numpy as np

    first, second = ctx.rng.standard_normal((2, p.size, p.size), dtype="float32")
    if p.op == "matmul":
        second = np.linalg.qr(second)[0].astype("float32")
    return first, second


def step(p: Params) -> Any:
    """All operations of a step in one graph, each on the result of the one before; returns the last result."""
    import tensorflow as tf

    def operate(value: Any, other: Any) -> Any:
        return value + other if p.op == "add" else tf.matmul(value, other)

    def chain(first: Any, second: Any) -> Any:
        def turn(index: Any, value: Any) -> Any:
            return index + 1, operate(value, second)

        start = (tf.constant(0), first)
        return tf.while_loop(lambda index, _: index < p.operations, turn, start, parallel_iterations=1)[1]

    return chain


def as_written(p: Params, inputs: Any) -> Iterator[Any]:
    """The article's loop: the same operation on the same two tensors, one call each."""
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
    """The article's million operations, in steps of `operations`."""
    return math.ceil(p.iterations / p.operations)


def flops(p: Params) -> float:
    """size² additions, or size³ multiplications and additions, for each operation."""
    return float(p.operations) * (p.size**2 if p.op == "add" else 2 * p.size**3)
