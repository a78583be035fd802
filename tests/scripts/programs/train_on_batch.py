"""A loop of train_on_batch."""

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
for step in range(60):
    x = np.random.rand(16, 8).astype("float32")
    loss = model.train_on_batch(x, x.sum(axis=1))
print("loss", loss)
