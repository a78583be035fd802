"""The machine's own peaks: a matrix product in each dtype, and a triad over memory and over a cache.

What a roofline is drawn with (S. Williams, A. Waterman, D. Patterson: "Roofline", 2009), measured by TensorFlow itself
on the device under test, so that it is the roof that a TensorFlow program can reach. The triad is that of STREAM
(J. McCalpin, 1995), x = x - s * y, as the one operation with which TensorFlow applies a gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, Field

from bench.workloads import Context, Probe

NOT_DTYPES = dict.fromkeys(("float64", "mixed_float16", "mixed_bfloat16"), "it multiplies in every dtype as it is")
DTYPES = ("float32", "float64", "bfloat16", "float16")
NOTES = (
    "The products are of two square matrices; the triad reads two arrays and writes one.",
    "A device without units for a dtype computes it by way of another; its peak is what it attains that way.",
)


class Params(BaseModel):
    """How large the matrices and the arrays are."""

    n: int = Field(1024, ge=16, le=65_536, description="rows and columns of a matrix")
    memory_bytes: int = Field(2**28, ge=4096, le=2**34, description="an array that no cache holds, bytes")
    cache_bytes: int = Field(2**17, ge=64, le=2**30, description="an array that a core's cache holds, bytes")
    repeats: int = Field(64, ge=1, le=10_000, description="triads over the cache in one call")


def probes(p: Params, ctx: Context) -> dict[str, Probe]:
    """`matmul/<dtype>`, `triad/memory` and, on a CPU, `triad/cache`; dtypes that the device can't multiply are out."""
    import tensorflow as tf

    found = {}
    for dtype in DTYPES:
        run = _product(tf, ctx, p.n, dtype)
        if run is not None:
            found[f"matmul/{dtype}"] = Probe(run)
    found["triad/memory"] = Probe(_triad(tf, ctx, p.memory_bytes, 1), bytes=3 * p.memory_bytes)
    if ctx.on_cpu:  # starting one so small takes a GPU longer than doing it
        found["triad/cache"] = Probe(_triad(tf, ctx, p.cache_bytes, p.repeats), bytes=3 * p.cache_bytes * p.repeats)
    return found


def flops(p: Params) -> float:
    """2 n³ of one product."""
    return 2.0 * p.n**3


def _product(tf: Any, ctx: Context, n: int, dtype: str) -> Callable[[], Any] | None:
    with tf.device(ctx.device):
        pairs = [[tf.cast(tf.constant(ctx.rng.random((n, n), dtype="float32")), dtype) for _ in range(2)] for _ in "ab"]
    function = tf.function(lambda a, b: tf.linalg.matmul(a, b), jit_compile=False)
    turn = [0]

    def run() -> Any:
        turn[0] += 1
        with tf.device(ctx.device):
            return function(*pairs[turn[0] % 2])

    try:
        run()[0, 0].numpy()
    except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError, tf.errors.UnimplementedError):
        return None
    return run


def _triad(tf: Any, ctx: Context, size: int, repeats: int) -> Callable[[], Any]:
    with tf.device(ctx.device):
        x, y = (tf.Variable(tf.ones(size // 4)) for _ in "xy")

    @tf.function(jit_compile=False)  # type: ignore[untyped-decorator]
    def triads() -> Any:
        for _ in range(repeats):
            tf.raw_ops.ResourceApplyGradientDescent(var=x.handle, alpha=1e-9, delta=y)
        return x[-1]

    def run() -> Any:
        with tf.device(ctx.device):
            return triads()

    return run
