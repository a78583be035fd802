"""Two calls of fit: a short one, then fine-tuning with more steps."""

import numpy as np
import tensorflow as tf

x = np.random.rand(320, 8).astype("float32")
model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, x.sum(axis=1), batch_size=32, epochs=1, verbose=0)
model.layers[0].trainable = False
model.compile("sgd", "mse")
model.fit(x, x.sum(axis=1), batch_size=32, epochs=5, verbose=0)
model.evaluate(x, x.sum(axis=1), verbose=0)
