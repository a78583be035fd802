"""Data and models that devbench cannot train with."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import tensorflow as tf
from pydantic import BaseModel


class Params(BaseModel):
    kind: Literal["lengths", "numbers", "generator", "nothing", "empty", "models", "values"] = "lengths"
    batch: int = 16


def data(p: Params) -> Any:
    x, y = np.zeros((1024, 8), "float32"), np.zeros(1024, "float32")
    wrong: dict[str, Any] = {
        "lengths": ({"rows": x, "more": x[:30]}, y),
        "numbers": ([1, 2, 3], y),
        "generator": ((x[:16], y[:16]) for _ in range(100)),
        "nothing": None,
        "empty": tf.data.Dataset.from_tensor_slices((x[:8], y[:8])).batch(p.batch, drop_remainder=True),
    }
    return wrong.get(p.kind, (x, y))


def model(p: Params) -> Any:
    network = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
    network.compile(optimizer="sgd", loss="mse")
    if p.kind == "models":
        return network, tf.keras.Sequential()
    if p.kind == "values":
        raise ValueError(f"these are wrong: {np.arange(500)!s}\n{list(range(500))}")
    return network
