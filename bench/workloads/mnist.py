"""Train a small convolutional network on MNIST: Conv2D 32, MaxPool, Dense 10; Adam; 10 epochs in batches of 32.

From "Is TensorFlow accelerated by GPUs?" (January 2025), code example 3.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from bench.workloads import KERAS_XLA, Context

DATA = "mnist"
NOTES = (
    "As printed, the article's program fails: it uses NumPy without importing it.",
    "The shipped sample is repeated up to the size of the full set. Times are real; the accuracy means nothing.",
    KERAS_XLA,
)


class Params(BaseModel):
    """The article's parameters."""

    batch: int = Field(32, ge=1, le=65_536, description="examples per step")
    epochs: int = Field(10, ge=1, le=100_000, description="passes over the training set")
    filters: int = Field(32, ge=1, le=4096, description="filters of the convolution")
    kernel: int = Field(3, ge=1, le=13, description="side of the convolution's kernel, pixels")
    pool: int = Field(2, ge=1, le=14, description="side of the pooling window, pixels")
    learning_rate: float = Field(0.001, gt=0, le=100, description="learning rate of Adam, no unit")


def data(ctx: Context) -> Any:
    """Return images (60000, 28, 28, 1), float32 in 0..1, and labels 0..9."""
    return _scaled(*ctx.load("mnist")[0])


def _scaled(images: Any, labels: Any) -> Any:
    return images.astype("float32")[..., None] / 255.0, labels


def model(p: Params) -> Any:
    """Return a compiled model: one convolution, one pooling layer, one softmax layer."""
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
    """Train as in the article. Everything else is Keras' default, including the progress bar and shuffling."""
    images, labels = data
    return model.fit(images, labels, epochs=p.epochs, batch_size=p.batch)


def evaluate(p: Params, ctx: Context, model: Any) -> dict[str, float]:
    """Return loss and accuracy on the test set, which the article prints after training."""
    values = model.evaluate(*_scaled(*ctx.load("mnist")[1]), batch_size=p.batch, verbose=0, return_dict=True)
    return {f"test_{name}": float(value) for name, value in values.items()}


def flops(p: Params) -> float:
    """Return the operations of the convolution and the dense layer.

    A multiply-add counts as 2. Each layer has a forward pass, a gradient of its weights and, except for the first, one
    of its inputs. TensorFlow's count is about 1.5 times as high: it includes the gradient of the images, which the
    graph drops later because nothing uses it, and it takes the input's size for the output's in a filter's gradient.
    """
    side = 28 - p.kernel + 1
    convolution = side**2 * p.filters * p.kernel**2
    dense = (side // p.pool) ** 2 * p.filters * 10
    return 2.0 * p.batch * (2 * convolution + 3 * dense)
