"""One epoch per call of fit, in a loop of the script."""

import numpy as np
import tensorflow as tf

x = np.random.rand(320, 8).astype("float32")
model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
for epoch in range(6):
    model.fit(x, x.sum(axis=1), batch_size=32, epochs=1, verbose=0)
    print(f"epoch {epoch}: {model.evaluate(x, x.sum(axis=1), verbose=0):.3f}")
