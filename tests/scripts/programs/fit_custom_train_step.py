"""Keras' fit of a model with a train_step of its own and two optimizers."""

import numpy as np
import tensorflow as tf


class Pair(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.second = tf.keras.layers.Dense(1), tf.keras.layers.Dense(1)
        self.first.build((None, 8))
        self.second.build((None, 8))

    def compile(self, first_optimizer, second_optimizer):
        super().compile()
        self.first_optimizer, self.second_optimizer = first_optimizer, second_optimizer

    def train_step(self, data):
        x, y = data
        losses = {}
        for layer, optimizer, name in (
            (self.first, self.first_optimizer, "first"),
            (self.second, self.second_optimizer, "second"),
        ):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((layer(x) - y) ** 2)
            weights = layer.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
            losses[name] = loss
        return losses


x = np.random.rand(320, 8).astype("float32")
model = Pair()
model.compile(tf.keras.optimizers.SGD(0.01), tf.keras.optimizers.Adam(0.01))
model.fit(x, x.sum(axis=1, keepdims=True), batch_size=16, epochs=3, verbose=0)
