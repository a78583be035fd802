"""A model that is built, but neither trained nor called."""

import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
print(model.count_params())
