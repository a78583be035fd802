"""A training loop, and a thread that uses the model meanwhile, as actors do in reinforcement learning."""

import threading

import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(64), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)
x = tf.random.normal((32, 8))
y = tf.reduce_sum(x, axis=1, keepdims=True)
trained = threading.Event()


@tf.function
def train_step(features, labels):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(features, training=True) - labels) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


@tf.function
def policy(observation):
    return tf.tanh(model(observation))


def act():
    while not trained.is_set():
        policy(x[:1])
        model(x[:1])


actor = threading.Thread(target=act, daemon=True)
actor.start()
for _ in range(60):
    train_step(x, y)
trained.set()
actor.join()
