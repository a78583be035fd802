"""A pipeline that gets one record at a time from a Python generator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context

CAUSE = r"Slowest stage: (from_generator|generator|flat_map|batch)"


class Params(BaseModel):
    planted: bool = True
    batch: int = 64
    epochs: int = 4


def data(p: Params, ctx: Context) -> Any:
    table, labels = ctx.rng.random((4096, 10), dtype="float32"), ctx.rng.random((4096, 1), dtype="float32")
    if not p.planted:
        dataset = tf.data.Dataset.from_tensor_slices((table, labels))
        return dataset.batch(p.batch, drop_remainder=True).prefetch(2)

    def records() -> Iterator[Any]:
        yield from zip(table, labels, strict=True)

    spec = (tf.TensorSpec((10,), tf.float32), tf.TensorSpec((1,), tf.float32))
    return tf.data.Dataset.from_generator(records, output_signature=spec).batch(p.batch, drop_remainder=True)


def model() -> Any:
    network = tf.keras.Sequential([tf.keras.Input(shape=(10,)), tf.keras.layers.Dense(64), tf.keras.layers.Dense(1)])
    network.compile("sgd", "mse")
    return network
