"""An eager GAN: an update of the discriminator and one of the generator make one step."""

import tensorflow as tf

Dense, Input = tf.keras.layers.Dense, tf.keras.Input
generator = tf.keras.Sequential([Input(shape=(4,)), Dense(8)])
discriminator = tf.keras.Sequential([Input(shape=(8,)), Dense(1)])
optimizers = {"generator": tf.keras.optimizers.Adam(1e-4), "discriminator": tf.keras.optimizers.Adam(1e-4)}


def train_step(real):
    with tf.GradientTape(persistent=True) as tape:
        fake = generator(tf.random.normal((16, 4)))
        wanted, unwanted = tf.reduce_mean(discriminator(real)), tf.reduce_mean(discriminator(fake))
        losses = unwanted - wanted, -unwanted
    for model, loss, name in ((discriminator, losses[0], "discriminator"), (generator, losses[1], "generator")):
        weights = model.trainable_variables
        optimizers[name].apply_gradients(zip(tape.gradient(loss, weights), weights))


for _ in range(45):
    train_step(tf.random.normal((16, 8)))
