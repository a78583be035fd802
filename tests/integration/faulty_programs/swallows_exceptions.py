"""It trains for ever and lets no exception stop it; with `outlive`, not even Linux ends it with its parent."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from pydantic import BaseModel, Field


class Params(BaseModel):
    batch: int = 8
    outlive: bool = Field(False, description="take back what has Linux end this process with its parent")


def data(ctx: Any) -> Any:
    return ctx.rng.normal(size=(64, 4)).astype(np.float32), np.ones((64, 1), np.float32)


def model() -> Any:
    import tensorflow as tf

    made = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made


def as_written(p: Params, model: Any, data: Any) -> None:
    if p.outlive:
        ctypes.CDLL(None).prctl(1, 0)
    while True:
        try:
            model.fit(*data, batch_size=p.batch, epochs=1000, verbose=0)
        except Exception:
            print("and on it goes")
