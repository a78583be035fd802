"""Keras' fit on a tf.data pipeline that reads a Python generator. Nobody knows how long an epoch is."""

import numpy as np
import tensorflow as tf


def examples():
    random = np.random.default_rng(0)
    for _ in range(110):
        x = random.random(8, dtype="float32")
        yield x, x.sum(keepdims=True)


signature = (tf.TensorSpec((8,), tf.float32), tf.TensorSpec((1,), tf.float32))
dataset = tf.data.Dataset.from_generator(examples, output_signature=signature)
dataset = dataset.shuffle(50).batch(20).prefetch(tf.data.AUTOTUNE)
model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(dataset, epochs=5, verbose=0)
