"""Two calls of fit on one batch in each step: of a discriminator, and of a generator with the discriminator."""

import numpy as np
import tensorflow as tf

layers = tf.keras.layers
critic = tf.keras.Sequential([tf.keras.Input(shape=(4,)), layers.Dense(1)])
critic.compile("sgd", "mse")
maker = tf.keras.Sequential([tf.keras.Input(shape=(2,)), layers.Dense(4)])
both = tf.keras.Sequential([tf.keras.Input(shape=(2,)), maker, critic])
both.compile("sgd", "mse")
for step in range(30):
    noise = np.random.rand(8, 2).astype("float32")
    critic.fit(np.random.rand(8, 4).astype("float32"), np.ones((8, 1)), verbose=0)
    both.fit(noise, np.ones((8, 1)), verbose=0)  # the last of a step
