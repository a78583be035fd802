"""Keras' fit on a Python generator."""

import numpy as np
import tensorflow as tf


def batches():
    while True:
        x = np.random.rand(16, 8).astype("float32")
        yield x, x.sum(axis=1, keepdims=True)


inputs = tf.keras.Input(shape=(8,))
model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(inputs))
model.compile("rmsprop", "mse")
model.fit(batches(), steps_per_epoch=15, epochs=4, verbose=0)
