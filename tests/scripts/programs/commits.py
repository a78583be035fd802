"""A training whose step takes as long as the module `cost` says. It has no end, so devbench stops it."""

import time

import tensorflow as tf
from cost import SECONDS

weights = tf.Variable([1.0, 2.0])
optimizer = tf.keras.optimizers.SGD(0.1)


def train():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(weights**2)
    optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
    time.sleep(SECONDS)


while True:
    train()
