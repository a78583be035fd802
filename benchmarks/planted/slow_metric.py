"""A metric that sorts many numbers in each step."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context

CAUSE = r"(?i)metric"


class Params(BaseModel):
    planted: bool = True
    batch: int = 256
    epochs: int = 4


def sorted_error(goals: Any, predictions: Any) -> Any:
    return tf.reduce_mean(tf.sort(tf.abs(goals - predictions), axis=-1)[:, :100])


def data(ctx: Context) -> Any:
    return ctx.rng.random((4096, 32), dtype="float32"), ctx.rng.random((4096, 1024), dtype="float32")


def model(p: Params) -> Any:
    network = tf.keras.Sequential([tf.keras.Input(shape=(32,)), tf.keras.layers.Dense(1024)])
    network.compile("sgd", "mse", metrics=[sorted_error] if p.planted else [])
    return network
