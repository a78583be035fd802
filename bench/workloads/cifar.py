"""Train a dense network on CIFAR-10: Flatten, Dense 3000, 1000, 10; SGD; 10 epochs in batches of 32.

From "Exploring CPU vs GPU Speed in AI Training: A Demonstration with TensorFlow" (Microsoft Community Hub, December
2023), which reports 8 min 5 s on 4 vCPUs and 40 s on a T4 of an Azure Standard NC4as T4 v3.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from bench.workloads import KERAS_XLA, Context

DATA = "cifar10"
NOTES = (
    "The article's model ends in sigmoid units with categorical cross-entropy, where softmax would be right. devbench "
    "keeps this.",
    "The article's images become float64 when they are divided by 255. Keras converts them to float32 before the first "
    "step.",
    "The shipped sample is repeated up to the size of the full set. Times are real; the accuracy means nothing.",
    KERAS_XLA,
)


class Params(BaseModel):
    """The article's parameters."""

    batch: int = Field(32, ge=1, le=65_536, description="examples per step")
    epochs: int = Field(10, ge=1, le=100_000, description="passes over the training set")
    hidden1: int = Field(3000, ge=1, le=1_000_000, description="units of the first dense layer")
    hidden2: int = Field(1000, ge=1, le=1_000_000, description="units of the second dense layer")
    learning_rate: float = Field(0.01, gt=0, le=100, description="learning rate of SGD, no unit")


def data(ctx: Context) -> Any:
    """Return images (50000, 32, 32, 3), float64 in 0..1, and one-hot labels (50000, 10), float32."""
    return _scaled(*ctx.load("cifar10")[0])


def _scaled(images: Any, labels: Any) -> Any:
    import numpy as np

    return images / 255, np.eye(10, dtype=np.float32)[labels.ravel()]


def model(p: Params) -> Any:
    """Return a compiled model of two relu layers and ten sigmoid units."""
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
    """Train as in the article. Everything else is Keras' default, including the progress bar and shuffling."""
    images, labels = data
    return model.fit(images, labels, epochs=p.epochs, batch_size=p.batch)


def evaluate(p: Params, ctx: Context, model: Any) -> dict[str, float]:
    """Return loss and accuracy on the test set, which the article scales but never uses."""
    values = model.evaluate(*_scaled(*ctx.load("cifar10")[1]), batch_size=p.batch, verbose=0, return_dict=True)
    return {f"test_{name}": float(value) for name, value in values.items()}


def flops(p: Params) -> float:
    """Return 2 operations per weight and example for each of forward pass, weights' gradient and inputs' gradient.

    The first layer needs no gradient of its inputs.
    """
    first = 3072 * p.hidden1
    weights = first + p.hidden1 * p.hidden2 + p.hidden2 * 10
    return 2.0 * p.batch * (3 * weights - first)
