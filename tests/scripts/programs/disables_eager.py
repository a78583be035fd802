"""A script without eager execution that runs no session."""

import tensorflow as tf

tf.compat.v1.disable_eager_execution()
x = tf.compat.v1.placeholder(tf.float32, (None, 8))
print(tf.reduce_sum(x).graph)
