"""Short epochs that each validate on many rows."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context

CAUSE = r"(?i)validation"
BETWEEN_EPOCHS = True


class Params(BaseModel):
    planted: bool = True
    batch: int = 32
    epochs: int = 12


def data(ctx: Context) -> Any:
    return ctx.rng.random((320, 64), dtype="float32"), ctx.rng.random((320, 1), dtype="float32")


def model() -> Any:
    network = tf.keras.Sequential(
        [tf.keras.Input(shape=(64,)), tf.keras.layers.Dense(512, activation="relu"), tf.keras.layers.Dense(1)]
    )
    network.compile("sgd", "mse")
    return network


def as_written(p: Params, model: Any, data: Any, ctx: Context) -> None:
    rows, goals = ctx.rng.random((20_000, 64), dtype="float32"), ctx.rng.random((20_000, 1), dtype="float32")
    validation = {"validation_data": (rows, goals)} if p.planted else {}
    model.fit(*data, batch_size=p.batch, epochs=p.epochs, verbose=0, **validation)
