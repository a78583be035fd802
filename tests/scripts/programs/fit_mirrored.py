"""Keras' fit under MirroredStrategy on one device."""

import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
x = np.random.rand(320, 8).astype("float32")
model.fit(x, x.sum(axis=1), batch_size=32, epochs=3, verbose=0)
