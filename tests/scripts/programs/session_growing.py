"""A training in a session of tf.compat.v1 that adds operations to the graph in each step."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
x, y = tf.placeholder(tf.float32, (None, 8)), tf.placeholder(tf.float32, (None, 1))
weights = tf.get_variable("weights", (8, 1))
errors = (tf.matmul(x, weights) - y) ** 2
train = tf.train.AdamOptimizer(0.01).minimize(tf.reduce_mean(errors))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(55):
        batch = np.random.rand(16, 8)
        session.run([train, tf.reduce_mean(errors)], {x: batch, y: batch.sum(axis=1, keepdims=True)})
