"""A train step in a tf.function, called from an epoch function, with a metric and a test step."""

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam()
mean = tf.keras.metrics.Mean()
x = np.random.rand(320, 8).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((x, x.sum(axis=1, keepdims=True))).shuffle(320).batch(16)


@tf.function
def train_step(features, labels):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(features, training=True) - labels) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    mean(loss)


@tf.function
def test_step(features, labels):
    return tf.reduce_mean((model(features) - labels) ** 2)


def run_epoch():
    mean.reset_state() if hasattr(mean, "reset_state") else mean.reset_states()
    for features, labels in dataset:
        train_step(features, labels)
    for features, labels in dataset:
        test_step(features, labels)


for epoch in range(4):
    run_epoch()
