"""A functional model with two outputs, each with a loss, a weight of the loss and weights of the examples."""

import numpy as np
import tensorflow as tf

inputs = tf.keras.Input(shape=(8,))
hidden = tf.keras.layers.Dense(8, activation="relu")(inputs)
price = tf.keras.layers.Dense(1, name="price")(hidden)
kind = tf.keras.layers.Dense(3, activation="softmax", name="kind")(hidden)
model = tf.keras.Model(inputs, {"price": price, "kind": kind})
model.compile(
    "adam",
    loss={"price": "mse", "kind": "sparse_categorical_crossentropy"},
    loss_weights={"price": 1.0, "kind": 0.2},
)
x = np.random.rand(200, 8).astype("float32")
y = {"price": x.sum(axis=1, keepdims=True), "kind": np.random.randint(0, 3, (200, 1))}
weights = {"price": np.ones(200), "kind": np.random.rand(200)}
model.fit(x, y, sample_weight=weights, batch_size=20, epochs=5, verbose=0)
