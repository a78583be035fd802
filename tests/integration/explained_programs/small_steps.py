"""A tiny step on rows that leave a partial batch at the end of an epoch."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context


class Params(BaseModel):
    batch: int = 32


def data(p: Params, ctx: Context) -> Any:
    return (ctx.rng.random((100, 4), dtype="float32"),)


def step() -> Any:
    return lambda rows: tf.reduce_sum(rows * 2.0)
