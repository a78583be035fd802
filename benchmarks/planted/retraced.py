"""A tf.function that gets a Python number and is traced again in each step."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context

CAUSE = r"(?i)retracing|new graph"


class Params(BaseModel):
    planted: bool = True


@tf.function  # type: ignore[untyped-decorator]
def noisy_loss(rows: Any, weights: Any, noise: Any) -> Any:
    return tf.reduce_mean(tf.tanh(rows @ weights) ** 2) * noise


def as_written(p: Params, ctx: Context) -> Iterator[Any]:
    rows = tf.constant(ctx.rng.random((512, 256), dtype="float32"))
    weights = tf.constant(ctx.rng.random((256, 256), dtype="float32"))
    for number in itertools.count(1):
        noise = 1.0 / number
        yield noisy_loss(rows, weights, noise if p.planted else tf.constant(noise))
