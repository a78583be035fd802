"""A model of one wide layer: 4 MiB of gradients for little computation, so that the all-reduce takes most of a step."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class Params(BaseModel):
    """The size of a step."""

    batch: int = Field(32, ge=2, description="examples of a step")
    units: int = Field(1024, ge=1, description="units of the layer, and features of an example")


def data(p: Params, ctx: Any) -> Any:
    """Return random examples and targets."""
    rows = 64 * p.batch
    shape = (rows, p.units)
    return ctx.rng.normal(size=shape).astype("float32"), ctx.rng.normal(size=shape).astype("float32")


def model(p: Params) -> Any:
    """Return the compiled model."""
    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Input((p.units,)), tf.keras.layers.Dense(p.units)])
    model.compile("sgd", "mse")
    return model
