"""No cause: large matrix products, on batches that are ready."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context

CAUSE = ""


class Params(BaseModel):
    planted: bool = True
    batch: int = 256
    epochs: int = 4


def data(ctx: Context) -> Any:
    return ctx.rng.random((4096, 512), dtype="float32"), ctx.rng.random((4096, 1), dtype="float32")


def model() -> Any:
    layers = [tf.keras.layers.Dense(1024, activation="relu") for _ in range(3)]
    network = tf.keras.Sequential([tf.keras.Input(shape=(512,)), *layers, tf.keras.layers.Dense(1)])
    network.compile("sgd", "mse")
    return network
