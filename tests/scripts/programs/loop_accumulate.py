"""Gradient accumulation: an update of the weights after every four batches. A step is the work between updates."""

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam(0.01)
sums = [tf.Variable(tf.zeros_like(weight), trainable=False) for weight in model.trainable_variables]
x = np.random.rand(320, 8).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((x, x.sum(axis=1, keepdims=True))).batch(8)


@tf.function
def accumulate(features, labels):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(features) - labels) ** 2) / 4
    for total, gradient in zip(sums, tape.gradient(loss, model.trainable_variables)):
        total.assign_add(gradient)
    return loss


@tf.function
def update():
    optimizer.apply_gradients(zip([total.value() for total in sums], model.trainable_variables))
    for total in sums:
        total.assign(tf.zeros_like(total))


for epoch in range(4):
    for number, (features, labels) in enumerate(dataset, 1):
        accumulate(features, labels)
        if number % 4 == 0:
            update()
