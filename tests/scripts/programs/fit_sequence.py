"""Keras' fit on a Sequence, the older name of PyDataset, with two inputs and two outputs."""

import numpy as np
import tensorflow as tf


class Batches(tf.keras.utils.Sequence):
    def __init__(self):
        super().__init__()
        self.x = np.random.rand(320, 4).astype("float32")

    def __len__(self):
        return 20

    def __getitem__(self, index):
        part = self.x[index * 16 : (index + 1) * 16]
        return (part, part + 1), (part.sum(axis=1), part.mean(axis=1))


a, b = tf.keras.Input(shape=(4,)), tf.keras.Input(shape=(4,))
hidden = tf.keras.layers.Concatenate()([a, b])
model = tf.keras.Model([a, b], [tf.keras.layers.Dense(1)(hidden), tf.keras.layers.Dense(1)(hidden)])
model.compile("adam", ["mse", "mae"])
model.fit(Batches(), epochs=3, verbose=0)
