"""A training whose callback predicts held-out rows after every batch."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from bench.workloads import Context


class HoldOut(tf.keras.callbacks.Callback):  # type: ignore[misc]
    def __init__(self, rows: Any) -> None:
        super().__init__()
        self.rows = rows

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.model.predict(self.rows, verbose=0)


def data(ctx: Context) -> Any:
    return ctx.rng.random((640, 20), dtype="float32"), ctx.rng.random((640, 1), dtype="float32")


def model() -> Any:
    network = tf.keras.Sequential([tf.keras.Input(shape=(20,)), tf.keras.layers.Dense(1)])
    network.compile("sgd", "mse")
    return network


def as_written(model: Any, data: Any) -> None:
    model.fit(*data, batch_size=32, epochs=2, callbacks=[HoldOut(data[0][:32])], verbose=0)
