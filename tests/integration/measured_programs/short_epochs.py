"""A user's training of short epochs with a partial batch, validation and a checkpoint, which may stop by itself."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Iterator
from typing import Any, Literal

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
    source: Literal["arrays", "dataset", "generator"] = "arrays"  # the others hold all rows, and have no validation
    frequency: int = 1  # epochs from one validation to the next


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


def endless(p: Params, rows: Any, targets: Any) -> Iterator[Any]:
    for batch in itertools.cycle(range(p.rows // p.batch)):
        part = slice(batch * p.batch, (batch + 1) * p.batch)
        yield rows[part], targets[part]


def as_written(p: Params, model: Any, data: Any) -> Any:
    folder = tempfile.mkdtemp()  # the diagnosis calls `fit` again; the worker removes its temporary files
    checkpoint = tf.keras.callbacks.ModelCheckpoint(f"{folder}/weights.weights.h5", save_weights_only=True)
    if p.source == "dataset":
        batches = tf.data.Dataset.from_tensor_slices(data).batch(p.batch).prefetch(2)
        return model.fit(batches, epochs=p.epochs, verbose=0)
    if p.source == "generator":
        steps = p.rows // p.batch
        return model.fit(endless(p, *data), epochs=p.epochs, steps_per_epoch=steps, verbose=0)
    return model.fit(
        *data,
        epochs=p.epochs,
        batch_size=p.batch,
        validation_split=0.2,
        validation_freq=p.frequency,
        callbacks=[checkpoint, EndOfEpoch(p.pause, p.stop_after)],
        verbose=0,
    )
