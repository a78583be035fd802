"""A pipeline whose shuffle buffer holds slow elements, so that the first batch waits for all of them."""

from __future__ import annotations

import time
from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context


class Params(BaseModel):
    batch: int = 8
    buffer: int = 400


def read(number: Any) -> Any:
    def slowly(x: Any) -> Any:
        time.sleep(0.0005)
        return x

    return tf.ensure_shape(tf.py_function(slowly, [number], tf.float32), ())


def data(p: Params, ctx: Context) -> Any:
    numbers = tf.data.Dataset.from_tensor_slices(ctx.rng.random(4096, dtype="float32"))
    shuffled = numbers.map(read).shuffle(p.buffer, seed=1)
    return shuffled.map(lambda x: (tf.fill([4], x), x)).batch(p.batch, drop_remainder=True)


def model() -> Any:
    network = tf.keras.Sequential([tf.keras.Input(shape=(4,)), tf.keras.layers.Dense(1)])
    network.compile("sgd", "mse")
    return network
