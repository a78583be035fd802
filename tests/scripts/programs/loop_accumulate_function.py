"""A function that adds up the gradients of four calls, and updates the weights in every fourth one."""

import numpy as np
import tensorflow as tf

EVERY = 4
model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)
sums = [tf.Variable(tf.zeros_like(variable)) for variable in model.trainable_variables]
x = np.random.rand(1200, 8).astype("float32")


@tf.function
def train(features, call):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(features, training=True) - tf.reduce_sum(features, 1, keepdims=True)) ** 2)
    for total, gradient in zip(sums, tape.gradient(loss, model.trainable_variables)):
        total.assign_add(gradient)
    if call % EVERY == EVERY - 1:
        optimizer.apply_gradients(zip([total / EVERY for total in sums], model.trainable_variables))
        for total in sums:
            total.assign(tf.zeros_like(total))
    return loss


for number in range(120):
    train(x[number * 10 : number * 10 + 10], tf.constant(number))
