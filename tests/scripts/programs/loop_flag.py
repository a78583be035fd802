"""A custom loop whose function also validates, as its argument says. The validation begins late."""

import numpy as np
import tensorflow as tf

inputs = tf.keras.Input(shape=(8,))
model = tf.keras.Model(inputs, [tf.keras.layers.Dense(1)(inputs), tf.keras.layers.Dense(2)(inputs)])
both = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(8)])
outputs = tf.keras.Model(inputs, model(both(inputs)))
optimizer = tf.keras.optimizers.SGD(0.01)
x = np.random.rand(16, 8).astype("float32")


@tf.function
def run(x, training):
    with tf.GradientTape() as tape:
        first, second = outputs(x, training=training)
        loss = tf.reduce_mean((first - 1.0) ** 2) + tf.reduce_mean(second**2)
    if training:
        variables = outputs.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


def run_epoch(batches, training):
    for _ in range(batches):
        run(x, training=training)


for epoch in range(2):
    run_epoch(40, training=True)
    run_epoch(10, training=False)
