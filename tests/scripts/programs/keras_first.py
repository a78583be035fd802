"""A script that imports Keras and its data tools, and never TensorFlow itself."""

import keras
import numpy as np

x = np.random.rand(320, 8).astype("float32")
model = keras.Sequential([keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
model.fit(x, x.sum(axis=1), batch_size=16, epochs=2, verbose=0)
