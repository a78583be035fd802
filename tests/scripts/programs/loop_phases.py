"""Two trainings after each other with the same optimizer and function: two loops, not one."""

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam()


@tf.function
def train_step(features, labels):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(features) - labels) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


x = np.random.rand(16, 8).astype("float32")
with tf.device("/CPU:0"):
    for i in range(40):
        train_step(x, x.sum(axis=1, keepdims=True)).numpy()
with tf.device("/CPU:0"):
    for i in range(70):
        train_step(x, x.sum(axis=1, keepdims=True)).numpy()
