"""A small training by fit on its own pipeline, with a map that can run in parallel and an idle callback."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context


class Params(BaseModel):
    batch: int = 32
    rows: int = 640


class Idle(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """A callback that does nothing."""


def data(p: Params, ctx: Context) -> Any:
    rows = tf.data.Dataset.from_tensor_slices(ctx.rng.random((p.rows, 8), dtype="float32"))
    return rows.map(lambda x: (x * 2.0, tf.reduce_sum(x))).batch(p.batch, drop_remainder=True)


def model() -> Any:
    network = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
    network.compile("sgd", "mse", metrics=["mae"])
    return network


def as_written(model: Any, data: Any) -> Any:
    return model.fit(data, epochs=3, verbose=0, callbacks=[Idle()])
