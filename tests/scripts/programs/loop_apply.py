"""An eager loop that calls `apply` of Keras 3's optimizers itself."""

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)
x = tf.constant(np.random.rand(20, 8).astype("float32"))
for step in range(60):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x, training=True) - tf.reduce_sum(x, axis=1, keepdims=True)) ** 2)
    variables = model.trainable_variables
    optimizer.apply(tape.gradient(loss, variables), variables)
print(f"loss {float(loss):.3f}")
