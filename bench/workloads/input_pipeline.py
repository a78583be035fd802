"""Trains a small convolutional network behind an input pipeline that brightens 64×64×3 images one by one.

From "Why is TensorFlow performance poor on the GPU?" (January 2025), examples 1 and 2; its claim that preprocessing
may run "on the GPU" is tried for true by the case `model`, and its sleep of 1 ms an image by the case `slept`.
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
    """The article's numbers; `serial` is the default."""

    images: int = Field(10_000, ge=1, le=1_000_000, description="examples in the data")
    size: int = Field(64, ge=8, le=4096, description="side of an image, pixels")
    batch: int = Field(32, ge=1, le=65_536, description="examples a step")
    epochs: int = Field(2, ge=1, le=100_000, description="passes over the data")
    filters: int = Field(32, ge=1, le=4096, description="filters of the convolution")
    kernel: int = Field(3, ge=1, le=8, description="side of the convolution's kernel, pixels")
    pool: int = Field(2, ge=1, le=8, description="side of the pooling window, pixels")
    classes: int = Field(10, ge=2, le=1_000_000, description="units of the dense layer, and kinds of labels")
    learning_rate: float = Field(0.001, gt=0, le=100, description="Adam's step size, no unit; 0.001 is Keras' default")
    brightness: float = Field(
        0.1, ge=0, le=1, description="largest change of brightness, in units of the pixels' range"
    )
    place: Literal["serial", "parallel", "model"] = Field(
        "serial", description="where images are brightened: a map, a parallel map, or a layer of the model"
    )
    sleep: Literal["as-written", "real", "none"] = Field(
        "as-written", description="time.sleep in the map's Python, a sleep that every image waits for, or none"
    )
    sleep_ms: float = Field(1.0, ge=0, le=10_000, description="length of that sleep, milliseconds")

    @model_validator(mode="after")
    def _a_sleep_needs_a_map(self) -> Params:
        if self.place == "model" and self.sleep != "none":
            raise ValueError("place=model has no map that could sleep: add sleep=none")
        return self

    @model_validator(mode="after")
    def _something_is_left_to_pool(self) -> Params:
        if self.size - self.kernel + 1 < self.pool:
            raise ValueError("after the convolution nothing is left to pool: take a larger size, or a smaller kernel")
        return self


def notes(p: Params) -> list[str]:
    """What the article says of such a pipeline, and what is so."""
    said = [
        "A tf.data map runs on the host's CPU, never on a GPU: the article's \"GPU preprocessing\" (case parallel) "
        "differs from its CPU preprocessing in running in parallel and in having no sleep. Case model does it on the "
        "device.",
        "The brightness of an image is drawn statelessly from the seed and its place, so that it is the same wherever "
        "and in whatever order images are brightened; the article draws it anew each time.",
    ]
    said.append(KERAS_XLA)
    if p.sleep == "as-written":
        said.append("time.sleep inside Dataset.map runs once, while the map is traced: no image waits for it.")
    return said


def data(p: Params, ctx: Context) -> Any:
    """A tf.data.Dataset of batches: images (batch, size, size, 3) float32, uniform in 0..1, and labels int64."""
    import tensorflow as tf

    images = ctx.rng.random((p.images, p.size, p.size, 3), dtype="float32")
    dataset = tf.data.Dataset.from_tensor_slices((images, ctx.rng.integers(0, p.classes, p.images)))
    if p.place != "model":
        calls = tf.data.AUTOTUNE if p.place == "parallel" else None
        dataset = dataset.enumerate().map(lambda index, pair: _prepare(p, ctx, index, *pair), num_parallel_calls=calls)
    return dataset.batch(p.batch).prefetch(tf.data.AUTOTUNE)


def _prepare(p: Params, ctx: Context, index: Any, image: Any, label: Any) -> Any:
    """The article's map: traced once, so its Python sleeps once; py_function sleeps for every image."""
    import tensorflow as tf

    if p.sleep == "as-written":
        time.sleep(p.sleep_ms / 1000)
    elif p.sleep == "real":
        tf.py_function(lambda: time.sleep(p.sleep_ms / 1000), [], [])
    seed = tf.stack([tf.constant(ctx.seed, index.dtype), index])
    return tf.image.stateless_random_brightness(image, p.brightness, seed), label


def model(p: Params, ctx: Context) -> Any:
    """Conv2D, MaxPool, Flatten, Dense; Adam; before them, in place=model, the layer that brightens."""
    import tensorflow as tf

    layers = tf.keras.layers

    class Brighten(tf.keras.layers.Layer):  # type: ignore[misc]
        """What the map does, on the device and for training only."""

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
    """The article's call, silent as there."""
    return model.fit(data, epochs=p.epochs, verbose=0)


def total_steps(p: Params) -> int:
    """Epochs times batches, the last partial one included."""
    return p.epochs * math.ceil(p.images / p.batch)


def flops(p: Params) -> float:
    """Convolution and dense layer: 2 a multiply-add, forwards and twice back, but for the images' gradient.

    TensorFlow's counter finds about half as much again: its graph holds that gradient too, until it is pruned as
    nobody reads it, and its count of a filter's gradient takes the input's size for the output's.
    """
    side = p.size - p.kernel + 1
    convolution = side**2 * p.filters * 3 * p.kernel**2
    dense = (side // p.pool) ** 2 * p.filters * p.classes
    return 2.0 * p.batch * (2 * convolution + 3 * dense)
