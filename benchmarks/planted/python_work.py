"""A loop that augments each batch in Python, pixel row by pixel row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context

CAUSE = r"(?i)python without tensorflow|python between|own loop"


class Params(BaseModel):
    planted: bool = True


def augmented(images: Any, ctx: Context) -> Any:
    for image in images:
        for row in image:
            row[:] = np.roll(row, ctx.rng.integers(-4, 5), axis=0)
    return images


def model() -> Any:
    network = tf.keras.Sequential(
        [tf.keras.Input(shape=(32, 32, 3)), tf.keras.layers.Conv2D(8, 3, strides=2), tf.keras.layers.Flatten()]
    )
    network.compile("sgd", "mse")
    return network


def as_written(p: Params, model: Any, ctx: Context) -> Iterator[Any]:
    images, goals = ctx.rng.random((64, 32, 32, 3), dtype="float32"), np.zeros((64, 1800), dtype="float32")
    while True:
        yield model.train_on_batch(augmented(images, ctx) if p.planted else images, goals)
