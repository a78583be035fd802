"""A program with a finite number of steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context


class Params(BaseModel):
    steps: int = 400


def as_written(p: Params, ctx: Context) -> Iterator[Any]:
    rows = tf.constant(ctx.rng.random((64, 64), dtype="float32"))
    product = tf.function(lambda x, k: tf.reduce_sum(x @ x) + tf.cast(k, tf.float32))
    for index in tf.range(p.steps):
        yield product(rows, index)


def total_steps(p: Params) -> int:
    return p.steps
