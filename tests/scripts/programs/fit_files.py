"""Keras' fit with callbacks that write files: ModelCheckpoint and CSVLogger."""

import numpy as np
import tensorflow as tf

x = np.random.rand(640, 8).astype("float32")
model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
callbacks = [tf.keras.callbacks.ModelCheckpoint("best.h5"), tf.keras.callbacks.CSVLogger("log.csv")]
model.fit(x, x.sum(axis=1), batch_size=32, epochs=4, validation_split=0.2, callbacks=callbacks, verbose=2)
model.save_weights("last.weights.h5")
open("trained.txt", "w").write("yes")
