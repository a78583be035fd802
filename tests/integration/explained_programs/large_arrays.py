"""A step that gets a large array but reads only its first rows."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context

NOT_LOOPS = {"fused": "this loop does not have the cause"}


class Params(BaseModel):
    batch: int = 4096


def data(p: Params, ctx: Context) -> Any:
    return (ctx.rng.random((4 * p.batch, 1024), dtype="float32"),)


def step() -> Any:
    return lambda rows: tf.reduce_sum(rows[:8])
