"""An eager loop with a tape, and a validation after each epoch."""

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam(0.01)
x = np.random.rand(400, 8).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((x, x.sum(axis=1, keepdims=True))).batch(20)
for epoch in range(3):
    for features, labels in dataset:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(features, training=True) - labels) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    for features, labels in dataset.take(5):
        error = tf.reduce_mean((model(features, training=False) - labels) ** 2)
    print(f"epoch {epoch}: {float(loss):.3f} {float(error):.3f}")
