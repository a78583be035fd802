"""A train step that is traced before the loop and called as a concrete function."""

import tensorflow as tf

weight = tf.Variable(tf.zeros((8, 1)))
optimizer = tf.keras.optimizers.SGD(0.01)
if hasattr(optimizer, "build"):
    optimizer.build([weight])
x = tf.random.normal((32, 8))
y = tf.reduce_sum(x, axis=1, keepdims=True)


@tf.function
def train_step(features, labels):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((features @ weight - labels) ** 2)
    optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
    return loss


step = train_step.get_concrete_function(tf.TensorSpec((32, 8)), tf.TensorSpec((32, 1)))
for number in range(60):
    step(x, y)
