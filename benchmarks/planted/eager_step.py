"""A training step that runs operation by operation, and a read of the loss that costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context

CAUSE = r"(?i)eager execution|one by one"


class Params(BaseModel):
    planted: bool = True


def as_written(p: Params, ctx: Context) -> Iterator[Any]:
    rows = tf.constant(ctx.rng.random((32, 64), dtype="float32"))
    weights = [tf.Variable(ctx.rng.standard_normal((64, 64)).astype("float32") / 8) for _ in range(6)]

    def train_step() -> Any:
        with tf.GradientTape() as tape:
            hidden = rows
            for weight in weights:
                hidden = tf.nn.relu(hidden @ weight)
            loss = tf.reduce_mean(hidden**2)
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.01 * gradient)
        return loss

    step = train_step if p.planted else tf.function(train_step)
    while True:
        yield float(step())
