"""A training in a session of tf.compat.v1."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
x, y = tf.placeholder(tf.float32, (None, 8)), tf.placeholder(tf.float32, (None, 1))
weights = tf.get_variable("weights", (8, 1))
loss = tf.reduce_mean((tf.matmul(x, weights) - y) ** 2)
train = tf.train.AdamOptimizer(0.01).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(65):
        batch = np.random.rand(16, 8)
        _, value = session.run([train, loss], {x: batch, y: batch.sum(axis=1, keepdims=True)})
        if step % 10 == 0:
            print(step, session.run(loss, {x: batch, y: batch.sum(axis=1, keepdims=True)}))
