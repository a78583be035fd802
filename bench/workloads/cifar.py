"""Trains a dense network on CIFAR-10: Flatten, Dense 3000, 1000, 10; SGD; 10 epochs in batches of 32.

From "Exploring CPU vs GPU Speed in AI Training: A Demonstration with TensorFlow" (Microsoft Community Hub, December
2023), which reports 8 min 5 s on 4 vCPUs and 40 s on a T4 of an Azure Standard NC4as T4 v3.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from bench.workloads import KERAS_XLA, Context

DATA = "cifar10"
NOTES = (
    "The article ends a 10-class softmax problem in sigmoid units under categorical cross-entropy; kept as it is.",
    "The article's images are float64 after /255; Keras converts them to float32 before its first step.",
    "With the shipped sample repeated to the full set's size, times are real and an accuracy says nothing.",
    KERAS_XLA,
)


class Params(BaseModel):
    """The article's numbers."""

    batch: int = Field(32, ge=1, le=65_536, description="examples a step")
    epochs: int = Field(10, ge=1, le=100_000, description="passes over the training set")
    hidden1: int = Field(3000, ge=1, le=1_000_000, description="units of the first dense layer")
    hidden2: int = Field(1000, ge=1, le=1_000_000, description="units of the second dense layer")
    learning_rate: float = Field(0.01, gt=0, le=100, description="SGD's step size, no unit; 0.01 is Keras' default")


def data(ctx: Context) -> Any:
    """Images (50000, 32, 32, 3) in 0..1, float64; labels one-hot, float32."""
    return _scaled(*ctx.load("cifar10")[0])


def _scaled(images: Any, labels: Any) -> Any:
    import numpy as np

    return images / 255, np.eye(10, dtype=np.float32)[labels.ravel()]


def model(p: Params) -> Any:
    """Flatten, two relu layers, ten sigmoid units."""
    import tensorflow as tf

    layers = tf.keras.layers
    network = tf.keras.Sequential([
        tf.keras.Input(shape=(32, 32, 3)),
        layers.Flatten(),
        layers.Dense(p.hidden1, activation="relu"),
        layers.Dense(p.hidden2, activation="relu"),
        layers.Dense(10, activation="sigmoid"),
    ])  # fmt: skip
    optimizer = tf.keras.optimizers.SGD(p.learning_rate)
    network.compile(optimizer=optimizer, loss="categorical_crossentropy", metrics=["accuracy"])
    return network


def as_written(p: Params, model: Any, data: Any) -> Any:
    """The article's call: everything else is Keras' default, the progress bar and shuffling too."""
    images, labels = data
    return model.fit(images, labels, epochs=p.epochs, batch_size=p.batch)


def evaluate(p: Params, ctx: Context, model: Any) -> dict[str, float]:
    """Loss and accuracy on the test set, which the article scales and never uses."""
    values = model.evaluate(*_scaled(*ctx.load("cifar10")[1]), batch_size=p.batch, verbose=0, return_dict=True)
    return {f"test_{name}": float(value) for name, value in values.items()}


def flops(p: Params) -> float:
    """2 a weight and example forwards, 2 for its gradient, 2 for its input's gradient, but for the images'."""
    first = 3072 * p.hidden1
    weights = first + p.hidden1 * p.hidden2 + p.hidden2 * 10
    return 2.0 * p.batch * (3 * weights - first)
