"""Run inference with a dense network: Dense 128 and Dense 10 on 100 examples of 784 features.

From "Which is faster: TensorFlow with DirectML or TensorFlow with CPU?" (January 2025), examples 1 to 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, Field

from bench.workloads import Context

NOTES = (
    "The article looks for DirectML devices with tf.config.list_physical_devices('DML'). That list is always empty, "
    "because the plug-in's devices have the type GPU. As printed, the article's program runs on the CPU on every "
    "machine.",
    "The article times a single first call under the profiler, so its time includes the start of both. Here, the first "
    "call is a phase of its own, and each further call is a step.",
)


class Params(BaseModel):
    """The article's parameters."""

    batch: int = Field(100, ge=1, le=1_000_000, description="examples per step")
    features: int = Field(784, ge=1, le=1_000_000, description="numbers per example")
    hidden: int = Field(128, ge=1, le=1_000_000, description="units of the first dense layer")
    classes: int = Field(10, ge=1, le=1_000_000, description="units of the second dense layer")


def inputs(p: Params, ctx: Context) -> Any:
    """Return one array (batch, features), float32, standard normal."""
    return (ctx.rng.standard_normal((p.batch, p.features), dtype="float32"),)


def model(p: Params) -> Any:
    """Return a model of a relu layer and a softmax layer, not compiled."""
    import tensorflow as tf

    return tf.keras.Sequential([
        tf.keras.Input(shape=(p.features,)),
        tf.keras.layers.Dense(p.hidden, activation="relu"),
        tf.keras.layers.Dense(p.classes, activation="softmax"),
    ])  # fmt: skip


def step(model: Any) -> Any:
    """Return a function that computes the model's output."""

    def infer(examples: Any) -> Any:
        return model(examples, training=False)

    return infer


def as_written(model: Any, inputs: Any) -> Iterator[Any]:
    """Call the model eagerly on one tensor on the device, as in the article."""
    import tensorflow as tf

    examples = tf.constant(inputs[0])
    while True:
        yield model(examples)


def flops(p: Params) -> float:
    """Return one multiplication and one addition per weight and example."""
    return 2.0 * p.batch * p.hidden * (p.features + p.classes)
