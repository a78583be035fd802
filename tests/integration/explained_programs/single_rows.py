"""A training that predicts and fits one row at a time. Each call builds a dataset and traces it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from bench.workloads import Context


def model() -> Any:
    network = tf.keras.Sequential([tf.keras.Input(shape=(5,)), tf.keras.layers.Dense(2)])
    network.compile("sgd", "mse")
    return network


def as_written(model: Any, ctx: Context) -> Iterator[Any]:
    while True:
        row = ctx.rng.random((1, 5)).astype("float32")
        goal = model.predict(row, verbose=0)
        model.fit(row, goal, epochs=1, verbose=0)
        yield model
