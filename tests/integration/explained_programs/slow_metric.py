"""A small training by fit whose metric computes far more than its step."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context


class Params(BaseModel):
    batch: int = 32
    rows: int = 640


def slow(labels: Any, predictions: Any) -> Any:
    """Return the error, after needless matrix products."""
    large = tf.ones((400, 400)) * tf.reduce_mean(predictions)
    for _ in range(8):
        large = tf.tanh(large @ large)
    return tf.reduce_mean(tf.abs(labels - predictions)) + 0.0 * tf.reduce_sum(large)


def data(p: Params, ctx: Context) -> Any:
    rows = tf.data.Dataset.from_tensor_slices(ctx.rng.random((p.rows, 8), dtype="float32"))
    return rows.map(lambda x: (x, tf.reduce_sum(x))).batch(p.batch, drop_remainder=True)


def model() -> Any:
    network = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
    network.compile("sgd", "mse", metrics=[slow])
    return network


def as_written(model: Any, data: Any) -> Any:
    return model.fit(data, epochs=3, verbose=0)
