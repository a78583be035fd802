"""An eager loop that makes a new optimizer for each step."""

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
x = np.random.rand(600, 8).astype("float32")


def train(features):
    optimizer = tf.keras.optimizers.SGD(0.01)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(features, training=True) - tf.reduce_sum(features, 1, keepdims=True)) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


for start in range(0, 600, 10):
    train(x[start : start + 10])
