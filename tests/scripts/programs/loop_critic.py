"""Five updates of a critic for each update of a generator: a step is the work up to the generator's update."""

import tensorflow as tf

Dense, Input = tf.keras.layers.Dense, tf.keras.Input
generator = tf.keras.Sequential([Input(shape=(4,)), Dense(8)])
critic = tf.keras.Sequential([Input(shape=(8,)), Dense(1)])
critic_optimizer, generator_optimizer = tf.keras.optimizers.SGD(1e-4), tf.keras.optimizers.SGD(1e-4)


@tf.function
def train_critic(real):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(critic(generator(tf.random.normal((16, 4))))) - tf.reduce_mean(critic(real))
    weights = critic.trainable_variables
    critic_optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
    return loss


@tf.function
def train_generator():
    with tf.GradientTape() as tape:
        loss = -tf.reduce_mean(critic(generator(tf.random.normal((16, 4)))))
    weights = generator.trainable_variables
    generator_optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
    return loss


for step in range(30):
    for _ in range(5):
        train_critic(tf.random.normal((16, 8)))
    train_generator()
