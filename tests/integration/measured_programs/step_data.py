"""A custom training step over arrays, with a model that is not compiled."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from bench.workloads import Context


class Params(BaseModel):
    batch: int = 10
    epochs: int = 2


def data(ctx: Context) -> Any:
    rows = ctx.rng.random((1004, 8))
    return rows, rows.sum(axis=1, keepdims=True)


def model() -> Any:
    import tensorflow as tf

    return tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])


def step(model: Any) -> Any:
    import tensorflow as tf

    optimizer = tf.keras.optimizers.SGD(0.01)

    def train(rows: Any, targets: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(rows) - targets) ** 2)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))  # noqa: B905 - TensorFlow 2.10
        return loss

    return train
