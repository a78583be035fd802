"""A model whose train step returns two losses, and none called `loss`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context


class Params(BaseModel):
    rows: int = 640
    batch: int = 64
    epochs: int = 2


def data(p: Params, ctx: Context) -> Any:
    return ctx.rng.random((p.rows, 8), dtype="float32")


class Adversaries(tf.keras.Model):  # type: ignore[misc]
    """A generator and a discriminator. It takes its batch as `fit` passes examples without labels: not in a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(8)])
        self.discriminator = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])

    def call(self, rows: Any) -> Any:
        return self.discriminator(self.generator(rows))

    def train_step(self, rows: Any) -> Any:
        with tf.GradientTape() as tape:
            made = tf.reduce_mean(tf.nn.softplus(-self.discriminator(self.generator(rows))))
        generator = self.generator.trainable_variables
        for variable, gradient in zip(generator, tape.gradient(made, generator)):  # noqa: B905 - AutoGraph of TensorFlow 2.10 knows no `strict`
            variable.assign_sub(0.01 * gradient)
        with tf.GradientTape() as tape:
            seen = tf.reduce_mean(tf.nn.softplus(self.discriminator(rows)))
        discriminator = self.discriminator.trainable_variables
        for variable, gradient in zip(discriminator, tape.gradient(seen, discriminator)):  # noqa: B905
            variable.assign_sub(0.01 * gradient)
        return {"g_loss": made, "d_loss": seen}


def model() -> Any:
    network = Adversaries()
    network.compile(optimizer="sgd")
    return network
