"""Inference by calls of a model that contains another model."""

import tensorflow as tf

inner = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(4)])
model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), inner, tf.keras.layers.Dense(1)])
data = tf.random.normal((16, 8))
for _ in range(80):
    predictions = model(data, training=False)
