"""A model of two inputs, fed in each way that `data` may return them."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context

Sequence: Any = getattr(tf.keras.utils, "PyDataset", None) or tf.keras.utils.Sequence


class Params(BaseModel):
    form: Literal["dict", "list", "dataset", "weights", "sequence"] = "dict"
    rows: int = 710
    batch: int = 64
    epochs: int = 2


class Batches(Sequence):  # type: ignore[misc]
    """Batches of the examples, made in Python."""

    def __init__(self, x: Any, y: Any, batch: int) -> None:
        super().__init__()
        self.x, self.y, self.batch = x, y, batch

    def __len__(self) -> int:
        return math.ceil(len(self.y) / self.batch)

    def __getitem__(self, index: int) -> Any:
        part = slice(index * self.batch, (index + 1) * self.batch)
        return {name: rows[part] for name, rows in self.x.items()}, self.y[part]


def data(p: Params, ctx: Context) -> Any:
    user = ctx.rng.random((p.rows, 4))
    item = ctx.rng.random((p.rows, 3))
    y = (user.sum(axis=1) > item.sum(axis=1)).astype("float32")
    x = {"user": user.astype("float32"), "item": item.astype("float32")}
    if p.form == "list":
        return [user, item], y
    if p.form == "weights":
        return x, y, np.ones(p.rows, "float32")
    if p.form == "dataset":
        return tf.data.Dataset.from_tensor_slices((x, y)).batch(p.batch)
    if p.form == "sequence":
        return Batches(x, y, p.batch)
    return x, y


def model() -> Any:
    user, item = tf.keras.Input(shape=(4,), name="user"), tf.keras.Input(shape=(3,), name="item")
    joined = tf.keras.layers.Concatenate()([user, item])
    network = tf.keras.Model([user, item], tf.keras.layers.Dense(1, activation="sigmoid")(joined))
    network.compile(optimizer="sgd", loss="binary_crossentropy")
    return network
