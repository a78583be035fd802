"""A custom loop that sets seeds, some before it imports TensorFlow, and asks for XLA."""

import numpy as np

np.random.seed(3)

import tensorflow as tf  # noqa: E402

print("first number", np.random.rand())
tf.random.set_seed(4)
weight = tf.Variable([1.0])
optimizer = tf.keras.optimizers.SGD(0.001)


@tf.function(jit_compile=True)
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((weight * x - 3.0) ** 2)
    optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
    return loss


for _ in range(60):
    train_step(tf.ones((16,)))
