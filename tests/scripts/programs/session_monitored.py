"""A monitored session of tf.compat.v1, which trains until a hook stops it, and counts its steps itself."""

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
features = tf.random.normal((16, 4))
weight = tf.get_variable("weight", (4, 1))
loss = tf.reduce_mean((features @ weight - 1.0) ** 2)
step = tf.train.get_or_create_global_step()
train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=step)
with tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(num_steps=45)]) as session:
    while not session.should_stop():
        session.run([train, loss])
