"""Two models that change in turns without an optimizer. One tape computes two gradients, the other is used again."""

import tensorflow as tf


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(1)
        self.dense.build((None, 4))

    @property
    def weights(self):
        return self.dense.trainable_variables


def move(variables, gradients):
    for variable, gradient in zip(variables, gradients):
        variable.assign_sub(0.01 * gradient)


first, second = Net(), Net()
x = tf.random.normal((32, 4))
again = tf.GradientTape()
for step in range(50):
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_mean(first.dense(x) ** 2)
    kernel = tape.gradient(loss, first.weights[0])
    bias = tape.gradient(loss, first.weights[1])
    move(first.weights, [kernel, bias])
    with again:
        loss = tf.reduce_mean((second.dense(x) - first.dense(x)) ** 2)
    move(second.weights, again.gradient(loss, second.weights))
