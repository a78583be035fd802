"""A program that trains forever and swallows exceptions. With `outlive`, Linux does not kill it with its parent."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from pydantic import BaseModel, Field


class Params(BaseModel):
    batch: int = 8
    outlive: bool = Field(False, description="clear the signal that Linux sends when the parent ends")


def data(ctx: Any) -> Any:
    return ctx.rng.normal(size=(64, 4)).astype(np.float32), np.ones((64, 1), np.float32)


def model() -> Any:
    import tensorflow as tf

    network = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
    network.compile("sgd", "mse")
    return network


def as_written(p: Params, model: Any, data: Any) -> None:
    if p.outlive:
        ctypes.CDLL(None).prctl(1, 0)
    while True:
        try:
            model.fit(*data, batch_size=p.batch, epochs=1000, verbose=0)
        except Exception:
            print("swallowed an exception")
