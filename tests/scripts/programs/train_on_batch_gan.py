"""A GAN with train_on_batch: two calls for the discriminator and one for the generator make one step."""

import numpy as np
import tensorflow as tf

Dense, Input = tf.keras.layers.Dense, tf.keras.Input
generator = tf.keras.Sequential([Input(shape=(4,)), Dense(8)])
discriminator = tf.keras.Sequential([Input(shape=(8,)), Dense(1, activation="sigmoid")])
discriminator.compile("adam", "binary_crossentropy")
noise = Input(shape=(4,))
combined = tf.keras.Model(noise, discriminator(generator(noise)))
combined.compile("adam", "binary_crossentropy")
ones, zeros = np.ones((16, 1)), np.zeros((16, 1))
for step in range(40):
    fake = generator.predict_on_batch(np.random.rand(16, 4))
    discriminator.train_on_batch(np.random.rand(16, 8), ones)
    discriminator.train_on_batch(fake, zeros)
    combined.train_on_batch(np.random.rand(16, 4), ones)
