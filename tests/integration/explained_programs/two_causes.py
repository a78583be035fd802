"""A small training by fit that waits for its pipeline and then for a callback.

By default `tf.data` maps ahead of the step. That would hide the callback, and each cause alone would cost little, so it
is switched off. Autotuning is off too, because its cost at the end of an epoch is random (`bench.analyse.epoch_waits`).
"""

from __future__ import annotations

import time
from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context


class Params(BaseModel):
    rows: int = 160


class Slow(tf.keras.callbacks.Callback):  # type: ignore[misc]  # Keras has no type hints
    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        time.sleep(0.03)


def load(number: Any) -> Any:
    def slowly(x: Any) -> Any:
        time.sleep(0.002)
        return x

    return tf.ensure_shape(tf.py_function(slowly, [number], tf.float32), ())


def data(p: Params, ctx: Context) -> Any:
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    numbers = tf.data.Dataset.from_tensor_slices(ctx.rng.random(p.rows, dtype="float32")).with_options(options)
    return numbers.map(load).map(lambda x: (tf.fill([4], x), x)).batch(16, drop_remainder=True)


def model() -> Any:
    network = tf.keras.Sequential([tf.keras.Input(shape=(4,)), tf.keras.layers.Dense(1)])
    network.compile("sgd", "mse")
    return network


def as_written(model: Any, data: Any) -> Any:
    return model.fit(data, epochs=1000, verbose=0, callbacks=[Slow()])
