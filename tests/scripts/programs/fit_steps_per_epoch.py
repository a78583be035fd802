"""Keras' fit on endless data, with epochs that are no multiple of the steps in each call of the train function."""

import numpy as np
import tensorflow as tf

x = np.random.rand(320, 8).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, x.sum(axis=1))).batch(32).repeat()
model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
model.compile("adam", "mse", steps_per_execution=4)
model.fit(data, steps_per_epoch=10, epochs=4, verbose=0)
