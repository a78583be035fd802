"""A script that shows its plots in windows of its own choice."""

import matplotlib

matplotlib.use("TkAgg")
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

x = np.random.rand(320, 8).astype("float32")
model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
history = model.fit(x, x.sum(axis=1), batch_size=32, epochs=3, verbose=0)
plt.plot(history.history["loss"])
plt.savefig("loss.png")
plt.pause(0.01)
plt.show()
