"""A loop that passes all float64 rows to each step. TensorFlow converts them all to read one batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context

NOT_LOOPS = dict.fromkeys(("step", "resident", "fused"), "this loop does not have the cause")


class Params(BaseModel):
    batch: int = 256
    rows: int = 8192


def data(p: Params, ctx: Context) -> Any:
    return (ctx.rng.random((p.rows, 512)),)


def step() -> Any:
    return tf.reduce_sum


def as_written(p: Params, data: Any) -> Iterator[Any]:
    @tf.function  # type: ignore[untyped-decorator]
    def converted(rows: Any, first: Any) -> Any:
        return tf.reduce_sum(tf.cast(rows, tf.float32)[first : first + p.batch])

    while True:
        for first in range(0, p.rows, p.batch):
            yield converted(data[0], tf.constant(first))
