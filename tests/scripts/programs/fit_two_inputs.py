"""Keras' fit on a list of two inputs, with sample weights and a part of the data for validation."""

import numpy as np
import tensorflow as tf

left, right = tf.keras.Input(shape=(4,)), tf.keras.Input(shape=(4,))
joined = tf.keras.layers.Concatenate()([left, right])
network = tf.keras.Model([left, right], tf.keras.layers.Dense(1)(joined))
network.compile(optimizer="sgd", loss="mse")
a, b = np.random.rand(2, 640, 4)
network.fit([a, b], a[:, 0], sample_weight=np.ones(640), validation_split=0.25, batch_size=16, epochs=3, verbose=0)
