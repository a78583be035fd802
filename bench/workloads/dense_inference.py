"""Runs a dense network forwards: Dense 128, Dense 10 on 100 examples of 784 features.

From "Which is faster: TensorFlow with DirectML or TensorFlow with CPU?" (January 2025), examples 1 to 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, Field

from bench.workloads import Context

NOTES = (
    "The article asks tf.config.list_physical_devices('DML') for DirectML's devices, which is always empty: the "
    "plugin's device type is GPU. As printed it would fall back to the CPU on every machine.",
    "The article times one first call under the profiler, so it times the start of both; here each further call is "
    "a step, and the first is a phase of its own.",
)


class Params(BaseModel):
    """The article's numbers."""

    batch: int = Field(100, ge=1, le=1_000_000, description="examples a step")
    features: int = Field(784, ge=1, le=1_000_000, description="numbers an example has")
    hidden: int = Field(128, ge=1, le=1_000_000, description="units of the first dense layer")
    classes: int = Field(10, ge=1, le=1_000_000, description="units of the second dense layer")


def inputs(p: Params, ctx: Context) -> Any:
    """One (batch, features) float32 array, standard normal."""
    return (ctx.rng.standard_normal((p.batch, p.features), dtype="float32"),)


def model(p: Params) -> Any:
    """A relu and a softmax layer, not compiled."""
    import tensorflow as tf

    return tf.keras.Sequential([
        tf.keras.Input(shape=(p.features,)),
        tf.keras.layers.Dense(p.hidden, activation="relu"),
        tf.keras.layers.Dense(p.classes, activation="softmax"),
    ])  # fmt: skip


def step(model: Any) -> Any:
    """The model's output."""

    def infer(examples: Any) -> Any:
        return model(examples, training=False)

    return infer


def as_written(model: Any, inputs: Any) -> Iterator[Any]:
    """The article's call: the model, operation by operation, on one tensor that lies on the device."""
    import tensorflow as tf

    examples = tf.constant(inputs[0])
    while True:
        yield model(examples)


def flops(p: Params) -> float:
    """A multiplication and an addition a weight and example."""
    return 2.0 * p.batch * p.hidden * (p.features + p.classes)
