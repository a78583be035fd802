"""Builds, or clones, a Keras model of Dense 128 and Dense 10 on 100 features.

From "Why is TensorFlow GPU slower than CPU when creating and training models?" (January 2025), example 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, Field

from bench.workloads import Context

CASES = {"build": {"form": "build"}, "clone": {"form": "clone"}}
NOTES = (
    "The article clones on the CPU first and on the GPU second, once each: what a process does only once (the "
    "device's start, the first random kernel) is charged to whichever comes first. Here it is a phase of its own.",
    "clone_model makes new weights with the layers' initialisers; it copies none.",
)


class Params(BaseModel):
    """The article's numbers."""

    form: Literal["build", "clone"] = Field("clone", description="make the layers anew, or clone a model that is there")
    features: int = Field(100, ge=1, le=1_000_000, description="numbers an example has")
    hidden: int = Field(128, ge=1, le=1_000_000, description="units of the first dense layer")
    classes: int = Field(10, ge=1, le=1_000_000, description="units of the second dense layer")


def model(p: Params) -> Any:
    """The model that is cloned, with its weights."""
    return _build(p)


def _build(p: Params) -> Any:
    import tensorflow as tf

    return tf.keras.Sequential([
        tf.keras.Input(shape=(p.features,)),
        tf.keras.layers.Dense(p.hidden, activation="relu"),
        tf.keras.layers.Dense(p.classes, activation="softmax"),
    ])  # fmt: skip


def as_written(p: Params, ctx: Context, model: Any) -> Iterator[Any]:
    """One model a step, with its weights on the device under test."""
    import tensorflow as tf

    while True:
        with tf.device(ctx.device):
            made = _build(p) if p.form == "build" else tf.keras.models.clone_model(model)
        yield made


def total_steps() -> int:
    """The article makes one."""
    return 1
