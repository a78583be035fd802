"""Steps so small that Keras and TensorFlow take longer to start them than to compute them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context

CAUSE = r"(?i)keras fit|keras overhead|dispatch|copies|steps.per.execution|larger batch"


class Params(BaseModel):
    planted: bool = True
    batch: int = 8
    epochs: int = 4


def data(ctx: Context) -> Any:
    return ctx.rng.random((4096, 8), dtype="float32"), ctx.rng.random((4096, 1), dtype="float32")


def model(p: Params) -> Any:
    network = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
    network.compile("sgd", "mse", steps_per_execution=1 if p.planted else 32)
    return network
