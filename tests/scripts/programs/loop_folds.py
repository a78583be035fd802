"""A cross-validation: an eager training of a new model, with a new optimizer, for each of three folds."""

import numpy as np
import tensorflow as tf

x = np.random.rand(300, 8).astype("float32")
y = x.sum(axis=1, keepdims=True)
for fold in range(3):
    model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.Adam(0.01)
    train = [row for row in range(300) if row % 3 != fold]
    for step in range(30):
        rows = train[step * 6 : step * 6 + 6]
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x[rows], training=True) - y[rows]) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    test = [row for row in range(300) if row % 3 == fold]
    print(f"fold {fold}: {float(tf.reduce_mean((model(x[test], training=False) - y[test]) ** 2)):.3f}")
