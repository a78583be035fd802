"""Transfer learning: train a new head on a frozen base, then the whole network with a small learning rate."""

import numpy as np
import tensorflow as tf

layers = tf.keras.layers
base = tf.keras.Sequential([tf.keras.Input(shape=(8, 8, 3)), layers.Conv2D(4, 3), layers.BatchNormalization()])
base.trainable = False
inputs = tf.keras.Input(shape=(8, 8, 3))
outputs = layers.Dense(1)(layers.GlobalAveragePooling2D()(base(layers.Rescaling(1 / 255)(inputs), training=False)))
model = tf.keras.Model(inputs, outputs)
images = np.random.rand(96, 8, 8, 3).astype("float32")
labels = np.random.randint(0, 2, (96, 1))
dataset = tf.data.Dataset.from_tensor_slices((images, labels)).batch(16).prefetch(2)
model.compile("adam", tf.keras.losses.BinaryCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(dataset, epochs=4, validation_data=dataset.take(2), verbose=0)
base.trainable = True
model.compile(tf.keras.optimizers.Adam(1e-5), tf.keras.losses.BinaryCrossentropy(from_logits=True))
model.fit(dataset, initial_epoch=4, epochs=12, verbose=0)
