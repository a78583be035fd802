"""Measure the machine's peaks: a matrix product in each dtype, and a triad over memory and over a cache.

A roofline needs these peaks (S. Williams, A. Waterman, D. Patterson: "Roofline", 2009). TensorFlow measures them on the
device under test, so a TensorFlow program can reach them. The triad is that of STREAM (J. McCalpin, 1995),
x = x - s * y, as the single operation with which TensorFlow applies a gradient.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, Field

from bench.backends import capabilities
from bench.model.series import CACHE_TRIAD, MEMORY_TRIAD, PRODUCT
from bench.workloads import Context, Probe

NOT_DTYPES = dict.fromkeys(("float64", "mixed_float16", "mixed_bfloat16"), "it multiplies in every dtype anyway")

LONGEST = 1.0
"""A product that would take longer on a GPU is left out, in seconds. Such a GPU has hardly any units for its dtype, and
its samples would take minutes."""

NOTES = (
    "A product multiplies two square matrices. The triad reads two arrays and writes one.",
    "A device without hardware for a dtype computes in another one. Its peak is what it reaches that way.",
)


class Params(BaseModel):
    """Sizes of the matrices and arrays."""

    n: int = Field(1024, ge=16, le=65_536, description="rows and columns of a matrix")
    memory_bytes: int = Field(2**28, ge=4096, le=2**34, description="size of an array that fits into no cache, bytes")
    cache_bytes: int = Field(
        2**17, ge=64, le=2**30, description="size of an array that fits into a core's cache, bytes"
    )
    repeats: int = Field(64, ge=1, le=10_000, description="triads over the cache per call")


def probes(p: Params, ctx: Context) -> dict[str, Probe]:
    """Return `matmul/<dtype>`, `triad/memory` and, on a CPU, `triad/cache`.

    Dtypes that do not work, or that take too long on a GPU, are left out.
    """
    import tensorflow as tf

    result = {}
    for dtype in capabilities(ctx.backend).computes:
        run = _product(tf, ctx, p.n, dtype)
        if run is not None:
            result[PRODUCT + dtype] = Probe(run)
    result[MEMORY_TRIAD] = Probe(_triad(tf, ctx, p.memory_bytes, 1), bytes=3 * p.memory_bytes)
    if ctx.on_cpu:  # a GPU would take longer to start one so small than to run it
        result[CACHE_TRIAD] = Probe(_triad(tf, ctx, p.cache_bytes, p.repeats), bytes=3 * p.cache_bytes * p.repeats)
    return result


def flops(p: Params) -> float:
    """Return the 2 n³ operations of one product."""
    return 2.0 * p.n**3


def _product(tf: Any, ctx: Context, n: int, dtype: str) -> Callable[[], Any] | None:
    """Return a product of two matrices, or None if it fails or takes too long."""
    function = tf.function(lambda a, b: tf.linalg.matmul(a, b), jit_compile=False)
    calls = [0]

    def run() -> Any:
        calls[0] += 1
        with tf.device(ctx.device):
            return function(*pair[:: 1 if calls[0] % 2 else -1])

    try:
        pair = _matrices(tf, ctx, n // 4, dtype)
        run()[0, 0].numpy()
        start = time.perf_counter()
        run()[0, 0].numpy()
        if not ctx.on_cpu and (time.perf_counter() - start) * 4**3 > LONGEST:
            return None
        pair = _matrices(tf, ctx, n, dtype)
        run()[0, 0].numpy()
    except tf.errors.OpError:  # which error it is differs by device and dtype
        if dtype == "float32":  # every device computes in it, so the device fails
            raise
        return None
    return run


def _matrices(tf: Any, ctx: Context, n: int, dtype: str) -> tuple[Any, Any]:
    with tf.device(ctx.device):
        a, b = (tf.cast(tf.constant(ctx.rng.random((n, n), dtype="float32")), dtype) for _ in "ab")
    return a, b


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
