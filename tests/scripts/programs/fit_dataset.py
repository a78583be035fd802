"""Keras' fit on a tf.data pipeline with validation data and class weights."""

import numpy as np
import tensorflow as tf

x = np.random.rand(640, 8).astype("float32")
y = (x.sum(axis=1) > 4).astype("int32")
train = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(640).batch(32).prefetch(2)
model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(2)])
model.compile(
    optimizer="sgd", loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
)
model.fit(train, epochs=2, validation_data=train, class_weight={0: 1.0, 1: 2.0}, verbose=2)
