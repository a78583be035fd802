"""A step that computes in float64, because its NumPy data are float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from bench.workloads import Context


def as_written(ctx: Context) -> Iterator[Any]:
    rows = ctx.rng.random((64, 64))

    @tf.function  # type: ignore[untyped-decorator]
    def product(x: Any) -> Any:
        return tf.reduce_sum(x @ x)

    while True:
        yield product(tf.constant(rows))
