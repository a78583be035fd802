"""A program with inputs and a step only."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from bench.workloads import Context


class Params(BaseModel):
    size: int = 64


def inputs(p: Params, ctx: Context) -> Any:
    return ctx.rng.random((p.size, p.size), dtype="float32"), ctx.rng.random((p.size, 1), dtype="float32")


def step() -> Any:
    import tensorflow as tf

    return lambda left, right: tf.linalg.matmul(tf.nn.relu(left), right)


def flops(p: Params) -> float:
    return 2.0 * p.size**2
