"""Train a small network to recognize rows whose numbers add up to more than zero."""

from typing import Any

import tensorflow as tf
from pydantic import BaseModel, Field

from bench.workloads import Context


class Params(BaseModel):
    """All numbers of the program."""

    rows: int = Field(8192, ge=1, description="number of examples")
    batch: int = Field(64, ge=1, description="examples per step")
    epochs: int = Field(3, ge=1, description="passes over the data")


def data(p: Params, ctx: Context) -> tuple[Any, Any]:
    """Return rows (rows, 20), float32, standard normal, and labels (rows,), 0 or 1."""
    rows = ctx.rng.standard_normal((p.rows, 20), dtype="float32")
    return rows, (rows.sum(axis=1) > 0).astype("float32")


def model() -> Any:
    """Return a compiled model of a relu layer and a sigmoid unit."""
    layers = [tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(1, activation="sigmoid")]
    network = tf.keras.Sequential([tf.keras.Input(shape=(20,)), *layers])
    network.compile("sgd", "binary_crossentropy")
    return network
