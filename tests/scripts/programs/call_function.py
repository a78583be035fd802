"""Inference by calls of a tf.function that calls another one."""

import tensorflow as tf

weights = tf.Variable(tf.random.normal((8, 8)))


@tf.function
def product(x):
    return x @ weights


@tf.function
def infer(x):
    for _ in range(3):
        x = tf.nn.relu(product(x))
    return {"outputs": x}


for _ in range(90):
    infer(tf.ones((4, 8)))
