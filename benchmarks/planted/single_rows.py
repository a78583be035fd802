"""A training that calls predict for one row in each step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context

CAUSE = r"predict"


class Params(BaseModel):
    planted: bool = True


def model() -> Any:
    network = tf.keras.Sequential([tf.keras.Input(shape=(5,)), tf.keras.layers.Dense(16), tf.keras.layers.Dense(2)])
    network.compile("sgd", "mse")
    return network


def as_written(p: Params, model: Any, ctx: Context) -> Iterator[Any]:
    while True:
        row = ctx.rng.random((1, 5)).astype("float32")
        goal = model.predict(row, verbose=0) if p.planted else model(row, training=False).numpy()
        yield model.train_on_batch(row, goal * 0.9)
