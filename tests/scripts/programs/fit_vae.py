"""A variational autoencoder: a subclassed model with a train_step of its own, a sampling layer and tracked means."""

import numpy as np
import tensorflow as tf

layers = tf.keras.layers


class Sampling(layers.Layer):
    def call(self, inputs):
        mean, log_variance = inputs
        return mean + tf.exp(0.5 * log_variance) * tf.random.normal(tf.shape(mean))


pixels = tf.keras.Input(shape=(8, 8, 1))
hidden = layers.Flatten()(layers.Conv2D(4, 3, strides=2, padding="same", activation="relu")(pixels))
mean, log_variance = layers.Dense(2)(hidden), layers.Dense(2)(hidden)
encoder = tf.keras.Model(pixels, [mean, log_variance, Sampling()([mean, log_variance])])
code = tf.keras.Input(shape=(2,))
image = layers.Conv2DTranspose(1, 3, strides=2, padding="same")(layers.Reshape((4, 4, 4))(layers.Dense(64)(code)))
decoder = tf.keras.Model(code, image)


class Autoencoder(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder
        self.total = tf.keras.metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.total]

    def train_step(self, data):
        with tf.GradientTape() as tape:
            mean, log_variance, code = self.encoder(data)
            error = tf.reduce_mean((self.decoder(code) - data) ** 2)
            divergence = -0.5 * tf.reduce_mean(1 + log_variance - mean**2 - tf.exp(log_variance))
            loss = error + divergence
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_weights), self.trainable_weights))
        self.total.update_state(loss)
        return {"loss": self.total.result()}


model = Autoencoder()
model.compile(optimizer="adam")
model.fit(np.random.rand(128, 8, 8, 1).astype("float32"), epochs=6, batch_size=16, verbose=0)
