"""Keras' fit on arrays, under a main guard."""

import numpy as np
import tensorflow as tf


def build():
    network = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
    network.compile(optimizer="adam", loss="mse", metrics=["mae"])
    return network


if __name__ == "__main__":
    x = np.random.rand(790, 8).astype("float32")
    build().fit(x, x.sum(axis=1), batch_size=32, epochs=3, verbose=0)
