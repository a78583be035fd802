"""A tf.function that gets a Python number and is therefore traced again in each step."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from bench.workloads import Context


@tf.function  # type: ignore[untyped-decorator]
def scaled(rows: Any, number: int) -> Any:
    return tf.reduce_sum(rows * number)


def as_written(ctx: Context) -> Iterator[Any]:
    rows = tf.constant(ctx.rng.random((16, 8), dtype="float32"))
    for number in itertools.count():
        yield scaled(rows, number)
