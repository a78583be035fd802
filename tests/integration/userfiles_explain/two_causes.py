"""A small training by fit that waits for its pipeline, and whose metric reckons far more than its step does."""

from __future__ import annotations

import time
from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context


class Params(BaseModel):
    rows: int = 160


def load(number: Any) -> Any:
    def slowly(x: Any) -> Any:
        time.sleep(0.001)
        return x

    return tf.ensure_shape(tf.py_function(slowly, [number], tf.float32), ())


def slow(truth: Any, guess: Any) -> Any:
    """The error, after products that nobody asked for."""
    large = tf.ones((700, 700)) * tf.reduce_mean(guess)
    for _ in range(8):
        large = tf.tanh(large @ large)
    return tf.reduce_mean(tf.abs(truth - guess)) + 0.0 * tf.reduce_sum(large)


def data(p: Params, ctx: Context) -> Any:
    numbers = tf.data.Dataset.from_tensor_slices(ctx.rng.random(p.rows, dtype="float32"))
    return numbers.map(load).map(lambda x: (tf.fill([4], x), x)).batch(16, drop_remainder=True)


def model() -> Any:
    network = tf.keras.Sequential([tf.keras.Input(shape=(4,)), tf.keras.layers.Dense(1)])
    network.compile("sgd", "mse", metrics=[slow])
    return network


def as_written(model: Any, data: Any) -> Any:
    return model.fit(data, epochs=1000, verbose=0)
