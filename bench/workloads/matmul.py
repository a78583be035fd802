"""Multiply two 1000×1000 float32 matrices.

From "Is TensorFlow accelerated by GPUs?" (January 2025), code examples 1 and 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, Field

from bench.workloads import Context

NOT_DTYPES = dict.fromkeys(
    ("mixed_float16", "mixed_bfloat16"), "it has no Keras layers, and mixed policies affect only those"
)
FOLDED_BYTES = 10 * 1024 * 1024
"""Size of the largest constant that TensorFlow's runtime folds (`max_constant_size_in_bytes` in constant_folding.h)."""


class Params(BaseModel):
    """The article's parameter."""

    n: int = Field(1000, ge=1, le=32_768, description="rows and columns of each matrix")


def notes(p: Params) -> list[str]:
    """Explain what the article's program measures, and what it does not."""
    texts = [
        'As printed, the article\'s program fails on TensorFlow 2 with "The Session graph is empty": its operations '
        "run eagerly, so the Session has none. Here, the loop as-written puts them into a tf.compat.v1 graph.",
        "In the loop as-written, each step opens a new Session and runs it once, as in the article. Its time includes "
        "placing and optimizing the graph, not only the product.",
    ]
    if 4 * p.n**2 <= FOLDED_BYTES:
        texts.append(
            "In the loop as-written, the product of two constants is folded: the runtime computes it on the host's CPU "
            "while it optimizes the graph, and no MatMul is left to run. The partition graphs on the CPU show this for "
            "TensorFlow 2.21 and 2.10. By its source, TensorFlow folds graphs for a GPU in the same way, so there the "
            "article would time the CPU and a copy. The loop step measures the product on the device."
        )
    return texts


def inputs(p: Params, ctx: Context) -> Any:
    """Return two (n, n) matrices, float32, uniform in 0..1."""
    return tuple(ctx.rng.random((p.n, p.n), dtype="float32") for _ in range(2))


def step() -> Any:
    """Return a function that multiplies two matrices."""
    import tensorflow as tf

    def multiply(left: Any, right: Any) -> Any:
        return tf.matmul(left, right)

    return multiply


def as_written(p: Params, ctx: Context, inputs: Any) -> Iterator[Any]:
    """Build a graph of two constants and their product. Each step runs it once in a new Session."""
    import tensorflow as tf

    with tf.Graph().as_default() as graph, tf.device(ctx.device):
        product = tf.matmul(*map(tf.constant, inputs))
    while True:
        with tf.compat.v1.Session(graph=graph) as session:
            result = session.run(product)
        yield result


def flops(p: Params) -> float:
    """Return n³ multiplications and n³ additions."""
    return 2.0 * p.n**3
