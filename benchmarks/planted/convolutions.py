"""No cause: convolutions, on a pipeline that prepares batches in advance."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context

CAUSE = ""


class Params(BaseModel):
    planted: bool = True
    batch: int = 64
    epochs: int = 4


def data(p: Params, ctx: Context) -> Any:
    rows, labels = ctx.rng.random((1024, 32, 32, 3), dtype="float32"), ctx.rng.integers(0, 10, 1024)
    return tf.data.Dataset.from_tensor_slices((rows, labels)).batch(p.batch).cache().prefetch(2)


def model() -> Any:
    network = tf.keras.Sequential(
        [
            tf.keras.Input(shape=(32, 32, 3)),
            tf.keras.layers.Conv2D(32, 3, activation="relu"),
            tf.keras.layers.Conv2D(32, 3, activation="relu"),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(10),
        ]
    )
    network.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return network
