"""A train step in a tf.function that a strategy runs on its replica."""

import tensorflow as tf

strategy = tf.distribute.MirroredStrategy(["CPU:0"])
with strategy.scope():
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


for _ in range(60):
    strategy.run(train_step, args=(x, y))
