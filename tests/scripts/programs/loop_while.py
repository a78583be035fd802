"""Many steps in each call of a tf.function, in a loop of TensorFlow, on batches that are drawn in the graph."""

import tensorflow as tf

weight, bias = tf.Variable(tf.zeros((8, 1))), tf.Variable(0.0)
optimizer = tf.keras.optimizers.SGD(0.01)
if hasattr(optimizer, "build"):
    optimizer.build([weight, bias])


@tf.function
def train(steps):
    def body(step, _):
        features = tf.random.normal((32, 8))
        with tf.GradientTape() as tape:
            error = features @ weight + bias - tf.reduce_sum(features, axis=1, keepdims=True)
            loss = tf.reduce_mean(error**2)
        optimizer.apply_gradients(zip(tape.gradient(loss, [weight, bias]), [weight, bias]))
        return step + 1, loss

    return tf.while_loop(lambda step, _: step < steps, body, (tf.constant(0), tf.constant(0.0)))[1]


for _ in range(10):
    print(float(train(tf.constant(25))))
