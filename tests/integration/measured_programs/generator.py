"""A program with its own endless loop of steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from bench.workloads import Context


def as_written(ctx: Context) -> Iterator[Any]:
    weights = tf.Variable(tf.zeros((8, 1)))
    rows = tf.constant(ctx.rng.random((16, 8), dtype="float32"))
    optimizer = tf.keras.optimizers.SGD(0.01)

    @tf.function  # type: ignore[untyped-decorator]
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((rows @ weights - 1.0) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
        return loss

    while True:
        yield step()
