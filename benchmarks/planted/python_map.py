"""A pipeline whose map calls Python, which holds the interpreter's lock."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context

CAUSE = r"map .*python_map\.py line|Slowest stage: map"


class Params(BaseModel):
    planted: bool = True
    batch: int = 32
    epochs: int = 4


def ranked(row: Any) -> Any:
    return np.array(sorted(float(number) for number in row), dtype="float32")


def sort_row(row: Any, label: Any) -> Any:
    return tf.ensure_shape(tf.numpy_function(ranked, [row], tf.float32), (64,)), label


def data(p: Params, ctx: Context) -> Any:
    rows, labels = ctx.rng.random((2048, 64), dtype="float32"), ctx.rng.random((2048, 1), dtype="float32")
    dataset = tf.data.Dataset.from_tensor_slices((rows, labels))
    return (dataset.map(sort_row) if p.planted else dataset).batch(p.batch, drop_remainder=True).prefetch(2)


def model() -> Any:
    network = tf.keras.Sequential([tf.keras.Input(shape=(64,)), tf.keras.layers.Dense(256), tf.keras.layers.Dense(1)])
    network.compile("sgd", "mse")
    return network
