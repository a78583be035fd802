"""A trainer class in a package next to the script: a tf.function as a method, and metrics reset after each epoch."""

import numpy as np
import tensorflow as tf
from helper.training import Trainer


def main():
    x = np.random.rand(240, 8).astype("float32")
    y = (x.sum(axis=1, keepdims=True) > 4).astype("float32")
    train = tf.data.Dataset.from_tensor_slices((x[:200], y[:200])).shuffle(200).batch(10)
    test = tf.data.Dataset.from_tensor_slices((x[200:], y[200:])).batch(20)
    model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
    rate = tf.keras.optimizers.schedules.ExponentialDecay(0.01, 100, 0.9)
    Trainer(model, tf.keras.optimizers.Adam(rate)).run(train, test, epochs=4)


if __name__ == "__main__":
    main()
