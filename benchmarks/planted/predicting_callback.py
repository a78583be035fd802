"""A callback that predicts held-out rows after every batch."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context

CAUSE = r"HoldOut"


class Params(BaseModel):
    planted: bool = True
    batch: int = 64
    epochs: int = 4


class HoldOut(tf.keras.callbacks.Callback):  # type: ignore[misc]
    def __init__(self, rows: Any) -> None:
        super().__init__()
        self.rows = rows

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.model.predict(self.rows, verbose=0)


def data(ctx: Context) -> Any:
    return ctx.rng.random((2048, 256), dtype="float32"), ctx.rng.random((2048, 1), dtype="float32")


def model() -> Any:
    layers = [tf.keras.layers.Dense(2048, activation="relu") for _ in range(3)]
    network = tf.keras.Sequential([tf.keras.Input(shape=(256,)), *layers, tf.keras.layers.Dense(1)])
    network.compile("sgd", "mse")
    return network


def as_written(p: Params, model: Any, data: Any) -> None:
    callbacks = [HoldOut(data[0][:64])] if p.planted else []
    model.fit(*data, batch_size=p.batch, epochs=p.epochs, callbacks=callbacks, verbose=0)
