"""Build or clone a Keras model of Dense 128 and Dense 10 on 100 features.

From "Why is TensorFlow GPU slower than CPU when creating and training models?" (January 2025), example 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, Field

from bench.workloads import Context

CASES = {"build": {"form": "build"}, "clone": {"form": "clone"}}
NOTES = (
    "The article clones once on the CPU and then once on the GPU. The first of them also pays for what a process does "
    "only once, such as starting the device. Here, that is a phase of its own.",
    "clone_model initializes new weights. It does not copy any.",
)


class Params(BaseModel):
    """The article's parameters."""

    form: Literal["build", "clone"] = Field(
        "clone", description="build: create new layers; clone: clone an existing model"
    )
    features: int = Field(100, ge=1, le=1_000_000, description="numbers per example")
    hidden: int = Field(128, ge=1, le=1_000_000, description="units of the first dense layer")
    classes: int = Field(10, ge=1, le=1_000_000, description="units of the second dense layer")


def model(p: Params) -> Any:
    """Return the model that is cloned, with its weights."""
    return _build(p)


def _build(p: Params) -> Any:
    import tensorflow as tf

    return tf.keras.Sequential([
        tf.keras.Input(shape=(p.features,)),
        tf.keras.layers.Dense(p.hidden, activation="relu"),
        tf.keras.layers.Dense(p.classes, activation="softmax"),
    ])  # fmt: skip


def as_written(p: Params, ctx: Context, model: Any) -> Iterator[Any]:
    """Create one model per step, with its weights on the device under test."""
    import tensorflow as tf

    while True:
        with tf.device(ctx.device):
            network = _build(p) if p.form == "build" else tf.keras.models.clone_model(model)
        yield network


def total_steps() -> int:
    """Return 1: the article creates one model."""
    return 1
