"""A program with a loop of 30 calls of `train_on_batch`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf


def model() -> Any:
    network = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(4)])
    network.compile("sgd", "mse")
    return network


def as_written(model: Any) -> Iterator[Any]:
    rng = np.random.default_rng(1)
    for _ in range(30):
        yield model.train_on_batch(rng.random((16, 8), dtype="float32"), rng.random((16, 4), dtype="float32"))
