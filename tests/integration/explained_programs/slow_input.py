"""A small network whose pipeline has a slow second stage."""

from __future__ import annotations

import time
from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context


class Params(BaseModel):
    batch: int = 16


def load(number: Any) -> Any:
    def slowly(x: Any) -> Any:
        time.sleep(0.001)
        return x

    return tf.ensure_shape(tf.py_function(slowly, [number], tf.float32), ())


def data(p: Params, ctx: Context) -> Any:
    numbers = tf.data.Dataset.from_tensor_slices(ctx.rng.random(512, dtype="float32"))
    return numbers.map(load).map(lambda x: (tf.fill([4], x), x)).batch(p.batch, drop_remainder=True).prefetch(1)


def model() -> Any:
    network = tf.keras.Sequential([tf.keras.Input(shape=(4,)), tf.keras.layers.Dense(1)])
    network.compile("sgd", "mse")
    return network
