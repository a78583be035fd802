"""A script that trains a small network, whose input calls Python for each image (`benchmarks/gpu_acceptance.py`)."""

from typing import Any

import numpy as np
import tensorflow as tf

random = np.random.default_rng(0)
images, labels = random.integers(0, 255, (2000, 32, 32, 3), dtype="uint8"), random.integers(0, 10, 2000)


def prepare(image: Any) -> Any:
    return (image[:, ::-1] / np.float32(255)).astype("float32")


def load(image: Any, label: Any) -> Any:
    return tf.ensure_shape(tf.numpy_function(prepare, [image], tf.float32), (32, 32, 3)), label


data = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(2000).map(load).batch(32).prefetch(2)
layers = tf.keras.layers
model = tf.keras.Sequential(
    [
        tf.keras.Input((32, 32, 3)),
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, activation="relu"),
        layers.Flatten(),
        layers.Dense(10, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
with tf.device("/GPU:0"):
    model.fit(data, epochs=5, verbose=2)
