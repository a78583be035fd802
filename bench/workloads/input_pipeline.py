"""Train a small convolutional network on images of 64×64×3 that an input pipeline brightens one by one.

From "Why is TensorFlow performance poor on the GPU?" (January 2025), examples 1 and 2. The case `model` tests the claim
that preprocessing can run "on the GPU". The case `slept` really sleeps for 1 ms per image.
"""

from __future__ import annotations

import math
import time
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from bench.workloads import KERAS_XLA, Context

CASES = {
    "serial": {"place": "serial", "sleep": "as-written"},
    "parallel": {"place": "parallel", "sleep": "none"},
    "model": {"place": "model", "sleep": "none"},
    "slept": {"place": "serial", "sleep": "real"},
}


class Params(BaseModel):
    """The article's parameters. The defaults are those of the case `serial`."""

    images: int = Field(10_000, ge=1, le=1_000_000, description="number of images")
    size: int = Field(64, ge=8, le=4096, description="side of an image, pixels")
    batch: int = Field(32, ge=1, le=65_536, description="examples per step")
    epochs: int = Field(2, ge=1, le=100_000, description="passes over the data")
    filters: int = Field(32, ge=1, le=4096, description="filters of the convolution")
    kernel: int = Field(3, ge=1, le=8, description="side of the convolution's kernel, pixels")
    pool: int = Field(2, ge=1, le=8, description="side of the pooling window, pixels")
    classes: int = Field(10, ge=2, le=1_000_000, description="units of the dense layer; number of classes")
    learning_rate: float = Field(0.001, gt=0, le=100, description="learning rate of Adam, no unit")
    brightness: float = Field(0.1, ge=0, le=1, description="largest change of brightness; pixels range from 0 to 1")
    place: Literal["serial", "parallel", "model"] = Field(
        "serial",
        description="where images are brightened: in a serial map, in a parallel map, or in a layer of the model",
    )
    sleep: Literal["as-written", "real", "none"] = Field(
        "as-written",
        description="as-written: time.sleep in the map's Python code; real: a sleep for every image; none: no sleep",
    )
    sleep_ms: float = Field(1.0, ge=0, le=10_000, description="duration of the sleep, milliseconds")

    @model_validator(mode="after")
    def _a_sleep_needs_a_map(self) -> Params:
        if self.place == "model" and self.sleep != "none":
            raise ValueError("place=model has no map that can sleep; add sleep=none")
        return self

    @model_validator(mode="after")
    def _something_is_left_to_pool(self) -> Params:
        if self.size - self.kernel + 1 < self.pool:
            raise ValueError("nothing is left to pool after the convolution; use a larger size or a smaller kernel")
        return self


def notes(p: Params) -> list[str]:
    """Correct what the article says about such a pipeline."""
    texts = [
        "A tf.data map runs on the host's CPU, never on a GPU. The article's \"GPU preprocessing\" (case parallel) "
        "differs from its CPU preprocessing only in that it is parallel and does not sleep. The case model does the "
        "preprocessing on the device.",
        "The brightness of an image depends only on the seed and the image's position, so that it is the same on every "
        "device and in any order. The article draws a new value each time.",
        KERAS_XLA,
    ]
    if p.sleep == "as-written":
        texts.append("time.sleep inside Dataset.map runs once, while the map is traced. No image waits for it.")
    return texts


def data(p: Params, ctx: Context) -> Any:
    """Return a tf.data.Dataset of batches: images (batch, size, size, 3), float32, uniform in 0..1; labels, int64."""
    import tensorflow as tf

    images = ctx.rng.random((p.images, p.size, p.size, 3), dtype="float32")
    dataset = tf.data.Dataset.from_tensor_slices((images, ctx.rng.integers(0, p.classes, p.images)))
    if p.place != "model":
        calls = tf.data.AUTOTUNE if p.place == "parallel" else None
        dataset = dataset.enumerate().map(lambda index, pair: _prepare(p, ctx, index, *pair), num_parallel_calls=calls)
    return dataset.batch(p.batch).prefetch(tf.data.AUTOTUNE)


def _prepare(p: Params, ctx: Context, index: Any, image: Any, label: Any) -> Any:
    """Brighten one image. Python code in a map runs once, while it is traced; a py_function runs for every image."""
    import tensorflow as tf

    if p.sleep == "as-written":
        time.sleep(p.sleep_ms / 1000)
    elif p.sleep == "real":
        tf.py_function(lambda: time.sleep(p.sleep_ms / 1000), [], [])
    seed = tf.stack([tf.constant(ctx.seed, index.dtype), index])
    return tf.image.stateless_random_brightness(image, p.brightness, seed), label


def model(p: Params, ctx: Context) -> Any:
    """Return a compiled model: Conv2D, MaxPool, Flatten, Dense; for place=model, a layer that brightens comes first."""
    import tensorflow as tf

    layers = tf.keras.layers

    class Brighten(tf.keras.layers.Layer):  # type: ignore[misc]
        """Does the work of the map on the device, during training only."""

        def call(self, images: Any, training: Any = None) -> Any:
            if not training:
                return images
            shape = [tf.shape(images)[0], 1, 1, 1]
            deltas = tf.random.stateless_uniform(shape, [ctx.seed, 0], -p.brightness, p.brightness, alg="philox")
            return images + tf.cast(deltas, images.dtype)

    network = tf.keras.Sequential([
        tf.keras.Input(shape=(p.size, p.size, 3)),
        *([Brighten()] if p.place == "model" else []),
        layers.Conv2D(p.filters, (p.kernel, p.kernel), activation="relu"),
        layers.MaxPooling2D((p.pool, p.pool)),
        layers.Flatten(),
        layers.Dense(p.classes, activation="softmax"),
    ])  # fmt: skip
    network.compile(
        optimizer=tf.keras.optimizers.Adam(p.learning_rate),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    return network


def as_written(p: Params, model: Any, data: Any) -> Any:
    """Train as in the article, without output."""
    return model.fit(data, epochs=p.epochs, verbose=0)


def total_steps(p: Params) -> int:
    """Return epochs times batches per epoch, including the partial batch."""
    return p.epochs * math.ceil(p.images / p.batch)


def flops(p: Params) -> float:
    """Return the operations of the convolution and the dense layer.

    A multiply-add counts as 2. Each layer has a forward pass, a gradient of its weights and, except for the first, one
    of its inputs. TensorFlow's count is about 1.5 times as high: it includes the gradient of the images, which the
    graph drops later because nothing uses it, and it takes the input's size for the output's in a filter's gradient.
    """
    side = p.size - p.kernel + 1
    convolution = side**2 * p.filters * 3 * p.kernel**2
    dense = (side // p.pool) ** 2 * p.filters * p.classes
    return 2.0 * p.batch * (2 * convolution + 3 * dense)
