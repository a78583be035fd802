"""A step whose graph calls Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from bench.workloads import Context


def as_written(ctx: Context) -> Iterator[Any]:
    rows = tf.constant(ctx.rng.random((16, 8), dtype="float32"))

    @tf.function  # type: ignore[untyped-decorator]
    def step(x: Any) -> Any:
        return tf.reduce_sum(tf.numpy_function(np.sort, [x], tf.float32))

    while True:
        yield step(rows)
