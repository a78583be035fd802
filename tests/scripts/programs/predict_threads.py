"""Inference on batches that threads of Keras prepare with a tf.function."""

import numpy as np
import tensorflow as tf

KERAS_3 = not tf.keras.__version__.startswith("2.")
THREADS = {"workers": 2, "use_multiprocessing": False}


@tf.function
def scaled(rows):
    return rows / 255.0


class Rows(tf.keras.utils.PyDataset if KERAS_3 else tf.keras.utils.Sequence):
    def __len__(self):
        return 30

    def __getitem__(self, index):
        rows = np.full((16, 8), index, "float32")
        return np.stack([scaled(tf.constant(row)).numpy() for row in rows])


model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(4)])
if KERAS_3:
    model.predict(Rows(**THREADS), verbose=0)
else:
    model.predict(Rows(), verbose=0, **THREADS)
