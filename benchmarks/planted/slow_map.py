"""A pipeline with one slow map, in TensorFlow operations, that runs for one batch at a time."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context

CAUSE = r"map .*slow_map\.py line|Slowest stage: map"


class Params(BaseModel):
    planted: bool = True
    batch: int = 32
    epochs: int = 4


def sharpened(rows: Any, labels: Any) -> Any:
    for _ in range(40):
        rows = tf.image.adjust_contrast(rows, 1.01)
    return rows, labels


def data(p: Params, ctx: Context) -> Any:
    rows, labels = ctx.rng.random((2048, 32, 32, 3), dtype="float32"), ctx.rng.integers(0, 10, 2048)
    dataset = tf.data.Dataset.from_tensor_slices((rows, labels)).batch(p.batch, drop_remainder=True)
    return dataset.map(sharpened) if p.planted else dataset


def model() -> Any:
    network = tf.keras.Sequential(
        [
            tf.keras.Input(shape=(32, 32, 3)),
            tf.keras.layers.Conv2D(8, 3, strides=2, activation="relu"),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(10),
        ]
    )
    network.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return network
