"""A step that is handed a large array, of which it takes next to nothing once TensorFlow has it."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context

NOT_LOOPS = {"fused": "nothing is planted there"}


class Params(BaseModel):
    batch: int = 4096


def data(p: Params, ctx: Context) -> Any:
    return (ctx.rng.random((4 * p.batch, 1024), dtype="float32"),)


def step() -> Any:
    return lambda rows: tf.reduce_sum(rows[:8])
