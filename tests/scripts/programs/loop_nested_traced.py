"""A train step that is traced within a function of ten steps, and then called in a loop."""

import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)
x = tf.random.normal((32, 8))
y = tf.reduce_sum(x, axis=1, keepdims=True)


@tf.function
def train_step(features, labels):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(features, training=True) - labels) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


@tf.function
def train_ten(features, labels):
    loss = tf.constant(0.0)
    for _ in tf.range(10):
        loss = train_step(features, labels)
    return loss


train_ten(x, y)
for _ in range(60):
    train_step(x, y)
