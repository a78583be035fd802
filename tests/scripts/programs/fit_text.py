"""Text classification with a recurrent network, weights of the classes, and callbacks that change the training."""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(0)
words = random.randint(1, 100, (240, 12)) * (random.rand(240, 12) > 0.2)
labels = (words[:, 0] > 50).astype("float32")
model = tf.keras.Sequential(
    [
        tf.keras.layers.Embedding(100, 8, mask_zero=True),
        tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(4)),
        tf.keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(tf.keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["accuracy"])
callbacks = [
    tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9),
    tf.keras.callbacks.EarlyStopping("loss", min_delta=10.0, patience=3),
]
model.fit(
    words, labels, validation_split=0.25, epochs=20, batch_size=18, class_weight={0: 1.0, 1: 2.0}, callbacks=callbacks,
    verbose=0,
)  # fmt: skip
