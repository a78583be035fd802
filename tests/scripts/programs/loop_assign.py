"""An eager loop that changes its variables itself, as in a first course on TensorFlow."""

import numpy as np
import tensorflow as tf


class Line(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(5.0)
        self.b = tf.Variable(0.0)

    def __call__(self, x):
        return self.w * x + self.b


line = Line()
x = tf.constant(np.random.rand(200).astype("float32"))
y = 3.0 * x + 2.0
for epoch in range(60):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(y - line(x)))
    dw, db = tape.gradient(loss, [line.w, line.b])
    line.w.assign_sub(0.1 * dw)
    line.b.assign_sub(0.1 * db)
print(f"loss {float(loss):.3f}")
