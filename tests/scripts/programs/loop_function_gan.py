"""A GAN whose two updates are in one tf.function."""

import tensorflow as tf

Dense, Input = tf.keras.layers.Dense, tf.keras.Input
generator = tf.keras.Sequential([Input(shape=(4,)), Dense(8)])
discriminator = tf.keras.Sequential([Input(shape=(8,)), Dense(1)])
generator_optimizer, discriminator_optimizer = tf.keras.optimizers.Adam(1e-4), tf.keras.optimizers.Adam(1e-4)


@tf.function
def train_step(real):
    with tf.GradientTape() as first, tf.GradientTape() as second:
        fake = discriminator(generator(tf.random.normal((16, 4))))
        generator_loss = -tf.reduce_mean(fake)
        discriminator_loss = tf.reduce_mean(fake) - tf.reduce_mean(discriminator(real))
    weights = generator.trainable_variables
    generator_optimizer.apply_gradients(zip(first.gradient(generator_loss, weights), weights))
    weights = discriminator.trainable_variables
    discriminator_optimizer.apply_gradients(zip(second.gradient(discriminator_loss, weights), weights))
    return generator_loss, discriminator_loss


for _ in range(50):
    train_step(tf.random.normal((16, 8)))
