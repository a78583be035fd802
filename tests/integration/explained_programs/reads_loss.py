"""A loop that runs operations one by one and reads the loss after each step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from bench.workloads import Context


def as_written(ctx: Context) -> Iterator[Any]:
    weights = tf.Variable(tf.zeros((8, 1)))
    rows = tf.constant(ctx.rng.random((16, 8), dtype="float32"))
    while True:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((rows @ weights - 1.0) ** 2)
        weights.assign_sub(0.01 * tape.gradient(loss, weights))
        yield float(loss)
