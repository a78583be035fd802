"""A validation in a script's own loop is no part of a step, and counts in the projection."""

from __future__ import annotations

from pathlib import Path

import pytest
from devbench_process import run_devbench

SCRIPT = """import numpy as np
import tensorflow as tf

STEPS, PAUSE = 600, 0.5
x = tf.constant(np.random.rand(64, 32).astype("float32"))
network = tf.keras.Sequential([tf.keras.Input(shape=(32,)), tf.keras.layers.Dense(64), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.001)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((network(x, training=True) - tf.reduce_sum(x, axis=1, keepdims=True)) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, network.trainable_variables), network.trainable_variables))
    return loss


@tf.function
def test_step(x):
    return tf.reduce_mean(network(x))


for number in range(STEPS):
    train_step(x)
    if number % 50 == 49:
        end = tf.timestamp() + PAUSE
        while tf.timestamp() < end:
            float(test_step(x))
"""
PAUSE = 0.5
"""Seconds of each validation. A step takes a few milliseconds."""


@pytest.mark.timeout(600)
def test_a_validation_of_a_script_is_no_part_of_a_step_but_of_the_projection(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    run = run_devbench(tmp_path, "run", "train.py", "--max-processes", "1", "--max-time", "3m")
    assert run.code == 0, run.text()
    (result,) = run.results
    (sample,) = result.samples
    assert sample.facts.asides is not None
    assert sample.facts.asides.seconds == pytest.approx(PAUSE, rel=0.2)
    assert sample.facts.asides.every == pytest.approx(50, abs=1)
    blocks = [*sample.series[0].warmup, *sample.series[0].blocks]
    assert max(block.step_seconds for block in blocks) < PAUSE / 10
    assert result.projection is not None
    assert result.projection.build_and_fit_seconds.value > 600 / 50 * PAUSE * 0.8
    notes = [*result.notes, *sample.notes]
    assert any("such as a validation, is no part of a step" in note for note in notes), notes
