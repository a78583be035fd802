"""Train Dense 128 and Dense 10 on 100 random features with a custom step: 1,000 rows by 10 or 100,000 rows by 32.

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
    "The article uses one model and one optimizer for its runs on the CPU and on the GPU. The second run starts where "
    "the first ended, and its variables stay on the device that created them. Here, each run has its own.",
    "The article's times include tracing the step. Here, that is a phase of its own.",
    "The rows are float64, as np.random.rand returns them, and are converted in each step, as in the article.",
    "The article's step calls its outputs logits, but they are probabilities. Its loss expects probabilities, so the "
    "result is right.",
)


class Params(BaseModel):
    """The article's parameters. The defaults are those of the case `small`."""

    feed: Literal["slices", "dataset"] = Field(
        "slices", description="slices: slices of NumPy arrays; dataset: a tf.data pipeline"
    )
    rows: int = Field(1_000, ge=1, le=10_000_000, description="number of examples")
    batch: int = Field(10, ge=1, le=1_000_000, description="examples per step")
    steps: int = Field(100, ge=1, le=1_000_000_000, description="steps of the whole training with feed=slices")
    epochs: int = Field(1, ge=1, le=100_000, description="passes over the data with feed=dataset")
    features: int = Field(100, ge=1, le=1_000_000, description="numbers per example")
    hidden: int = Field(128, ge=1, le=1_000_000, description="units of the first dense layer")
    classes: int = Field(10, ge=2, le=1_000_000, description="units of the second dense layer")
    learning_rate: float = Field(0.001, gt=0, le=100, description="learning rate of Adam, no unit")


def data(p: Params, ctx: Context) -> Any:
    """Return rows (rows, features), float64, uniform in 0..1, and labels (rows,), int64."""
    return ctx.rng.random((p.rows, p.features)), ctx.rng.integers(0, p.classes, p.rows)


def model(p: Params) -> Any:
    """Return a model of a relu layer and a softmax layer. It is compiled, so that Keras' `fit` can be compared."""
    import tensorflow as tf

    network = tf.keras.Sequential([
        tf.keras.Input(shape=(p.features,)),
        tf.keras.layers.Dense(p.hidden, activation="relu"),
        tf.keras.layers.Dense(p.classes, activation="softmax"),
    ])  # fmt: skip
    network.compile(tf.keras.optimizers.Adam(p.learning_rate), tf.keras.losses.SparseCategoricalCrossentropy())
    return network


def step(p: Params, model: Any) -> Any:
    """Return a function that takes one gradient step with its own optimizer and returns the loss."""
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
    # AutoGraph of TensorFlow 2.10 does not support zip(strict=…).
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))  # noqa: B905
    return loss


def as_written(p: Params, model: Any, data: Any) -> Iterator[Any]:
    """Feed a tf.function that takes model, optimizer and loss as arguments, and read the loss after each step."""
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
    """Return 100 slices, or the batches of the pipeline including the partial batch."""
    return p.steps if p.feed == "slices" else p.epochs * math.ceil(p.rows / p.batch)


def flops(p: Params) -> float:
    """Return 2 operations per weight and example for each of forward pass, weights' gradient and inputs' gradient.

    The first layer needs no gradient of its inputs.
    """
    first = p.features * p.hidden
    return 2.0 * p.batch * (3 * (first + p.hidden * p.classes) - first)
