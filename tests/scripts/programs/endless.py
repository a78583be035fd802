"""A training without an end that catches every exception, and sets threads and a device itself."""

import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.001)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    weights = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
    return loss


while True:
    try:
        with tf.device("/GPU:0"):
            train_step(tf.ones((16, 8)))
        with tf.device("/CPU:0"):
            tf.ones(1)
    except BaseException as error:
        print("caught", type(error).__name__)
