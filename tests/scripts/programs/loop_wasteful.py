"""A custom loop with causes of lost time: slow input, Python, layers for each step, and a loss that is read."""

import time

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)
history = []


def examples():
    for _ in range(200):
        time.sleep(0.04)
        yield np.random.rand(16, 8).astype("float32")


@tf.function
def train_step(features):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(features) - tf.reduce_sum(features, axis=1, keepdims=True)) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


def busy(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


options = tf.data.Options()
options.autotune.enabled = False  # otherwise, TensorFlow prepares the next batch while the step runs
dataset = tf.data.Dataset.from_generator(examples, output_signature=tf.TensorSpec((16, 8), tf.float32))
for features in dataset.with_options(options):
    unused = [tf.keras.layers.Dense(4) for _ in range(3)]
    history.append(float(train_step(features)))
    busy(0.012)
