"""Fit a line by gradient descent, with a step of its own."""

from typing import Any

import tensorflow as tf
from pydantic import BaseModel, Field

from bench.workloads import Context


class Params(BaseModel):
    """All numbers of the program."""

    rows: int = Field(8192, ge=1, description="number of examples")
    batch: int = Field(64, ge=1, description="examples per step")
    epochs: int = Field(3, ge=1, description="passes over the data")
    rate: float = Field(0.1, gt=0, description="learning rate, no unit")


def data(p: Params, ctx: Context) -> tuple[Any, Any]:
    """Return x (rows, 1), float32, standard normal, and y = 2 x + 1 (rows, 1)."""
    x = ctx.rng.standard_normal((p.rows, 1), dtype="float32")
    return x, 2 * x + 1


def step(p: Params) -> Any:
    """Return a function that changes the slope and the offset once, and returns the mean squared error."""
    slope, offset = tf.Variable(0.0), tf.Variable(0.0)

    def train(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((slope * x + offset - y) ** 2)
        of_slope, of_offset = tape.gradient(loss, (slope, offset))
        slope.assign_sub(p.rate * of_slope)
        offset.assign_sub(p.rate * of_offset)
        return loss

    return train
