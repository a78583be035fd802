"""Multiplies two 1000×1000 float32 matrices.

From "Is TensorFlow accelerated by GPUs?" (January 2025), code examples 1 and 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, Field

from bench.workloads import Context

NOT_DTYPES = dict.fromkeys(("mixed_float16", "mixed_bfloat16"), "it has no Keras layers, which a mixed policy is of")
FOLDED_BYTES = 10 * 1024 * 1024
"""Largest constant that TensorFlow's runtime folds (`max_constant_size_in_bytes` in constant_folding.h)."""


class Params(BaseModel):
    """The article's number."""

    n: int = Field(1000, ge=1, le=32_768, description="rows and columns of each matrix")


def notes(p: Params) -> list[str]:
    """What the article's program measures, and what it does not."""
    said = [
        'As printed the article\'s program fails on TensorFlow 2 ("The Session graph is empty"): its operations run '
        "eagerly and the Session finds none. As written here puts them into a tf.compat.v1 graph.",
        "As written, each step opens a Session of its own and runs it once, as the article does: "
        "the time is that of placing and optimising the graph as much as of the product.",
    ]
    if 4 * p.n**2 <= FOLDED_BYTES:
        said.append(
            "As written, the product of two constants is folded: the runtime computes it on the host's CPU while it "
            "optimises the graph, and no MatMul is left to run (read from the partition graphs on the CPU, TensorFlow "
            "2.21 and 2.10). Its source folds for a GPU's graph alike, so there the article would time the CPU and a "
            "copy. Loop step measures the product on the device."
        )
    return said


def inputs(p: Params, ctx: Context) -> Any:
    """Two (n, n) float32 matrices, uniform in 0..1."""
    return tuple(ctx.rng.random((p.n, p.n), dtype="float32") for _ in range(2))


def step() -> Any:
    """Their product."""
    import tensorflow as tf

    def multiply(left: Any, right: Any) -> Any:
        return tf.matmul(left, right)

    return multiply


def as_written(p: Params, ctx: Context, inputs: Any) -> Iterator[Any]:
    """One graph of two constants and their product; for each step a new Session that runs it once."""
    import tensorflow as tf

    with tf.Graph().as_default() as graph, tf.device(ctx.device):
        product = tf.matmul(*map(tf.constant, inputs))
    while True:
        with tf.compat.v1.Session(graph=graph) as session:
            result = session.run(product)
        yield result


def flops(p: Params) -> float:
    """A multiplication and an addition for each of n³ products."""
    return 2.0 * p.n**3
