"""One evaluation of many batches."""

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.random.rand(960, 8).astype("float32")
print(model.evaluate(x, x.sum(axis=1), batch_size=16, verbose=0))
