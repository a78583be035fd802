"""A training on a `tf.data` pipeline, without a loop of its own."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context


class Params(BaseModel):
    batches: int = 100
    rest: int = 0


def data(p: Params, ctx: Context) -> Any:
    rows = ctx.rng.random((p.batches * 16 + p.rest, 8), dtype="float32")
    return tf.data.Dataset.from_tensor_slices((rows, rows.sum(axis=1))).batch(16).prefetch(1)


def model() -> Any:
    network = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
    network.compile(optimizer="sgd", loss="mse")
    return network
