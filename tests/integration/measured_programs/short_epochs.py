"""A user's training of short epochs with a partial batch, validation and a checkpoint, which may stop by itself."""

from __future__ import annotations

import tempfile
import time
from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context


class Params(BaseModel):
    batch: int = 16
    epochs: int = 6
    rows: int = 150  # of which fit trains on 120: 7 full batches and one of 8
    pause: float = 0.5  # seconds that a callback takes at the end of each epoch
    stop_after: int = 0  # epochs after which a callback stops the training; 0 for never
    xla: bool = False
    dataset: bool = False  # whether fit trains on a dataset of all rows, without validation


class EndOfEpoch(tf.keras.callbacks.Callback):  # type: ignore[misc]
    def __init__(self, pause: float, stop_after: int) -> None:
        super().__init__()
        self.pause, self.stop_after = pause, stop_after

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        time.sleep(self.pause)
        if epoch + 1 == self.stop_after:
            self.model.stop_training = True


def data(p: Params, ctx: Context) -> Any:
    rows = ctx.rng.random((p.rows, 8)).astype("float32")
    return rows, rows.sum(axis=1, keepdims=True)


def model(p: Params) -> Any:
    network = tf.keras.Sequential([
        tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(1),
    ])  # fmt: skip
    network.compile(optimizer="sgd", loss="mse", jit_compile=p.xla)
    return network


def as_written(p: Params, model: Any, data: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = tf.keras.callbacks.ModelCheckpoint(f"{folder}/weights.weights.h5", save_weights_only=True)
        if p.dataset:
            batches = tf.data.Dataset.from_tensor_slices(data).batch(p.batch).prefetch(2)
            return model.fit(batches, epochs=p.epochs, verbose=0)
        return model.fit(
            *data,
            epochs=p.epochs,
            batch_size=p.batch,
            validation_split=0.2,
            callbacks=[checkpoint, EndOfEpoch(p.pause, p.stop_after)],
            verbose=0,
        )
