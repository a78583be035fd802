"""An eager loop in which an optimizer of tf.compat.v1 minimizes a function."""

import tensorflow as tf

weight = tf.Variable(tf.zeros((4, 1)))
optimizer = tf.compat.v1.train.AdamOptimizer(0.01)
for step in range(70):
    features = tf.random.normal((16, 4))
    optimizer.minimize(lambda: tf.reduce_mean((features @ weight - 1.0) ** 2), var_list=[weight])
    if step % 10 == 0:
        print(step, weight.numpy()[0])
