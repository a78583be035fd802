"""Reinforcement learning: the network acts in an environment, and is updated once after each episode."""

import numpy as np
import tensorflow as tf

policy = tf.keras.Sequential([tf.keras.Input(shape=(2,)), tf.keras.layers.Dense(8, "tanh"), tf.keras.layers.Dense(2)])
optimizer = tf.keras.optimizers.Adam(0.01)
random = np.random.default_rng(0)


def episode():
    position, states, actions, rewards = 0.0, [], [], []
    for _ in range(int(random.integers(3, 9))):
        state = np.array([[position, 1.0]], dtype="float32")
        action = int(tf.random.categorical(policy(state), 1)[0, 0])
        position += 0.5 if action else -0.5
        states, actions, rewards = [*states, state[0]], [*actions, action], [*rewards, -abs(position - 1.0)]
    return np.array(states), np.array(actions), np.cumsum(rewards[::-1])[::-1].astype("float32")


for _ in range(40):
    states, actions, returns = episode()
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(actions, policy(states))
        loss = tf.reduce_mean(losses * returns)
    optimizer.apply_gradients(zip(tape.gradient(loss, policy.trainable_variables), policy.trainable_variables))
