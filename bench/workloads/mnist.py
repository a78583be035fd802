"""Trains a small convolutional network on MNIST: Conv2D 32, MaxPool, Dense 10; Adam; 10 epochs in batches of 32.

From "Is TensorFlow accelerated by GPUs?" (January 2025), code example 3.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from bench.workloads import KERAS_XLA, Context

DATA = "mnist"
NOTES = (
    "The article's program uses NumPy without importing it, and fails as printed.",
    "With the shipped sample repeated to the full set's size, times are real and an accuracy says nothing.",
    KERAS_XLA,
)


class Params(BaseModel):
    """The article's numbers."""

    batch: int = Field(32, ge=1, le=65_536, description="examples a step")
    epochs: int = Field(10, ge=1, le=100_000, description="passes over the training set")
    filters: int = Field(32, ge=1, le=4096, description="filters of the convolution")
    kernel: int = Field(3, ge=1, le=13, description="side of the convolution's kernel, pixels")
    pool: int = Field(2, ge=1, le=14, description="side of the pooling window, pixels")
    learning_rate: float = Field(0.001, gt=0, le=100, description="Adam's step size, no unit; 0.001 is Keras' default")


def data(ctx: Context) -> Any:
    """Images (60000, 28, 28, 1) in 0..1, float32; labels 0..9."""
    return _scaled(*ctx.load("mnist")[0])


def _scaled(images: Any, labels: Any) -> Any:
    return images.astype("float32")[..., None] / 255.0, labels


def model(p: Params) -> Any:
    """One convolution, one pooling, one softmax layer."""
    import tensorflow as tf

    layers = tf.keras.layers
    network = tf.keras.Sequential([
        tf.keras.Input(shape=(28, 28, 1)),
        layers.Conv2D(p.filters, (p.kernel, p.kernel), activation="relu"),
        layers.MaxPooling2D((p.pool, p.pool)),
        layers.Flatten(),
        layers.Dense(10, activation="softmax"),
    ])  # fmt: skip
    optimizer = tf.keras.optimizers.Adam(p.learning_rate)
    network.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return network


def as_written(p: Params, model: Any, data: Any) -> Any:
    """The article's call: everything else is Keras' default, the progress bar and shuffling too."""
    images, labels = data
    return model.fit(images, labels, epochs=p.epochs, batch_size=p.batch)


def evaluate(p: Params, ctx: Context, model: Any) -> dict[str, float]:
    """Loss and accuracy on the test set, as the article prints after training."""
    values = model.evaluate(*_scaled(*ctx.load("mnist")[1]), batch_size=p.batch, verbose=0, return_dict=True)
    return {f"test_{name}": float(value) for name, value in values.items()}


def flops(p: Params) -> float:
    """Convolution and dense layer: 2 a multiply-add, forwards and twice back, but for the images' gradient.

    TensorFlow's counter finds about half as much again: its graph holds that gradient too, until it is pruned as
    nobody reads it, and its count of a filter's gradient takes the input's size for the output's.
    """
    side = 28 - p.kernel + 1
    convolution = side**2 * p.filters * p.kernel**2
    dense = (side // p.pool) ** 2 * p.filters * 10
    return 2.0 * p.batch * (2 * convolution + 3 * dense)
