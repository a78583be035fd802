"""A service: a thread takes requests from a queue, and answers them with a model until it is told to stop."""

import queue
import threading

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
requests, answers = queue.Queue(), []


def serve():
    while (rows := requests.get()) is not None:
        answers.append(model(rows).numpy())


server = threading.Thread(target=serve)
server.start()
for _ in range(60):
    requests.put(np.random.rand(4, 8).astype("float32"))
requests.put(None)
server.join()
print(len(answers), "answers")
