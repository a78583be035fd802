"""Predictions, and the gradients of some of them by their inputs and by weights. Nothing is trained."""

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input(shape=(6,)), tf.keras.layers.Dense(3)])
rows = tf.constant(np.random.rand(32, 6).astype("float32"))
for step in range(60):
    model(rows, training=False)
for step in range(10):
    with tf.GradientTape() as tape:
        tape.watch(rows)
        score = tf.reduce_sum(model(rows, training=False)[:, 0])
    saliency = tape.gradient(score, [rows, model.trainable_variables[0]])
