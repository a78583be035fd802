"""An eager loop whose tape is persistent for a single gradient, which it also records."""

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)
x = np.random.rand(600, 8).astype("float32")
for start in range(0, 600, 10):
    features = tf.constant(x[start : start + 10])
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_mean((model(features, training=True) - tf.reduce_sum(features, 1, keepdims=True)) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
