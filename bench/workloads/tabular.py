"""Trains Dense 128, Dense 10 on 100 random features by a custom step: 1,000 rows by 10, or 100,000 rows by 32.

From "Why is TensorFlow GPU slower than CPU when creating and training models?" (January 2025), examples 2 (small)
and 3 (large).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, Field

from bench.workloads import Context

CASES = {
    "small": {"feed": "slices", "rows": 1_000, "batch": 10},
    "large": {"feed": "dataset", "rows": 100_000, "batch": 32},
}
NOTES = (
    "The article trains its CPU and its GPU run on one model and one optimizer: the second starts where the first "
    "ended, and its variables stay on the device that made them. Here each run has its own.",
    "The article's times include the tracing of its step; here that is a phase of its own.",
    "The rows are float64 as np.random.rand makes them, and are converted at each step, as the article has it.",
    "What the article's step calls logits are probabilities; its loss takes them as such, so no harm is done.",
)


class Params(BaseModel):
    """The article's numbers; `small` is the default."""

    feed: Literal["slices", "dataset"] = Field("slices", description="slices of NumPy arrays, or a tf.data pipeline")
    rows: int = Field(1_000, ge=1, le=10_000_000, description="examples in the data")
    batch: int = Field(10, ge=1, le=1_000_000, description="examples a step")
    steps: int = Field(100, ge=1, le=1_000_000_000, description="steps of the whole program when fed by slices")
    epochs: int = Field(1, ge=1, le=100_000, description="passes over the data when fed by a pipeline")
    features: int = Field(100, ge=1, le=1_000_000, description="numbers an example has")
    hidden: int = Field(128, ge=1, le=1_000_000, description="units of the first dense layer")
    classes: int = Field(10, ge=2, le=1_000_000, description="units of the second dense layer")
    learning_rate: float = Field(0.001, gt=0, le=100, description="Adam's step size, no unit")


def data(p: Params, ctx: Context) -> Any:
    """Rows (rows, features) float64, uniform in 0..1; labels int64."""
    return ctx.rng.random((p.rows, p.features)), ctx.rng.integers(0, p.classes, p.rows)


def model(p: Params) -> Any:
    """A relu and a softmax layer; compiled, which the article has no need of, so that Keras' `fit` can be compared."""
    import tensorflow as tf

    network = tf.keras.Sequential([
        tf.keras.Input(shape=(p.features,)),
        tf.keras.layers.Dense(p.hidden, activation="relu"),
        tf.keras.layers.Dense(p.classes, activation="softmax"),
    ])  # fmt: skip
    network.compile(tf.keras.optimizers.Adam(p.learning_rate), tf.keras.losses.SparseCategoricalCrossentropy())
    return network


def step(p: Params, model: Any) -> Any:
    """One gradient step with an optimizer of its own; returns the loss."""
    import tensorflow as tf

    optimizer, loss_of = tf.keras.optimizers.Adam(p.learning_rate), tf.keras.losses.SparseCategoricalCrossentropy()

    def train(rows: Any, labels: Any) -> Any:
        return _descend(rows, labels, model, optimizer, loss_of)

    return train


def _descend(rows: Any, labels: Any, model: Any, optimizer: Any, loss_of: Any) -> Any:
    import tensorflow as tf

    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(rows))
    weights = model.trainable_variables
    # TensorFlow 2.10's AutoGraph knows no zip(strict=…).
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))  # noqa: B905
    return loss


def as_written(p: Params, model: Any, data: Any) -> Iterator[Any]:
    """Feeds a tf.function that is given model, optimizer and loss, and reads the loss at each step."""
    import tensorflow as tf

    optimizer, loss_of = tf.keras.optimizers.Adam(p.learning_rate), tf.keras.losses.SparseCategoricalCrossentropy()
    train = tf.function(_descend)
    for rows, labels in _slices(p, *data) if p.feed == "slices" else _pipeline(p, data):
        yield train(rows, labels, model, optimizer, loss_of).numpy()


def _slices(p: Params, rows: Any, labels: Any) -> Iterator[tuple[Any, Any]]:
    first = 0
    while True:
        yield rows[first : first + p.batch], labels[first : first + p.batch]
        first = (first + p.batch) % p.rows


def _pipeline(p: Params, data: Any) -> Iterator[tuple[Any, Any]]:
    import tensorflow as tf

    dataset = tf.data.Dataset.from_tensor_slices(data).batch(p.batch).prefetch(tf.data.AUTOTUNE)
    while True:
        yield from dataset


def total_steps(p: Params) -> int:
    """100 slices, or one pass of the pipeline, the last partial batch included."""
    return p.steps if p.feed == "slices" else p.epochs * math.ceil(p.rows / p.batch)


def flops(p: Params) -> float:
    """2 a weight and example forwards and twice back, but for the rows' gradient."""
    first = p.features * p.hidden
    return 2.0 * p.batch * (3 * (first + p.hidden * p.classes) - first)
