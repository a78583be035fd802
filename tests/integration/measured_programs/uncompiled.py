"""A training whose model is not compiled, so that Keras cannot train it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from bench.workloads import Context


class Params(BaseModel):
    batch: int = 10


def data(ctx: Context) -> Any:
    return ctx.rng.random((100, 8)), ctx.rng.random((100, 1))


def model() -> Any:
    import tensorflow as tf

    return tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
