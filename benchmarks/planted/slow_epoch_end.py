"""A callback that writes the whole model as text at the end of each epoch. Epochs are short."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context

CAUSE = r"TextCheckpoint"
BETWEEN_EPOCHS = True


class Params(BaseModel):
    planted: bool = True
    batch: int = 32
    epochs: int = 12


class TextCheckpoint(tf.keras.callbacks.Callback):  # type: ignore[misc]
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        for weights in self.model.get_weights():
            np.savetxt(os.devnull, weights)


def data(ctx: Context) -> Any:
    return ctx.rng.random((640, 128), dtype="float32"), ctx.rng.random((640, 1), dtype="float32")


def model() -> Any:
    network = tf.keras.Sequential(
        [tf.keras.Input(shape=(128,)), tf.keras.layers.Dense(2048, activation="relu"), tf.keras.layers.Dense(1)]
    )
    network.compile("sgd", "mse")
    return network


def as_written(p: Params, model: Any, data: Any) -> None:
    callbacks = [TextCheckpoint()] if p.planted else []
    model.fit(*data, batch_size=p.batch, epochs=p.epochs, callbacks=callbacks, verbose=0)
