"""A trainer whose loop is in another file than the script's."""

import tensorflow as tf


class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.loss = tf.keras.metrics.Mean(name="loss")
        self.accuracy = tf.keras.metrics.BinaryAccuracy(name="accuracy", threshold=0.0)
        self.function = tf.keras.losses.BinaryCrossentropy(from_logits=True)

    @tf.function
    def train_step(self, features, labels):
        with tf.GradientTape() as tape:
            logits = self.model(features, training=True)
            loss = self.function(labels, logits)
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        self.loss.update_state(loss)
        self.accuracy.update_state(labels, logits)

    @tf.function
    def test_step(self, features, labels):
        self.loss.update_state(self.function(labels, self.model(features, training=False)))

    def run(self, train, test, epochs):
        for epoch in range(epochs):
            self.reset()
            for features, labels in train:
                self.train_step(features, labels)
            print(f"epoch {epoch}: {self.loss.result():.3f} {self.accuracy.result():.3f}")
            self.reset()
            for features, labels in test:
                self.test_step(features, labels)

    def reset(self):
        for metric in (self.loss, self.accuracy):
            metric.reset_state() if hasattr(metric, "reset_state") else metric.reset_states()
