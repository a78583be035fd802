"""A user's step with one product pinned to another device: the second half of a CPU that was split in two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from bench.workloads import Context

context._reset_context()  # devices can be split before TensorFlow has started only, and devbench has started it
half = tf.config.LogicalDeviceConfiguration()
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], [half, half])


def as_written(ctx: Context) -> Iterator[Any]:
    rows = tf.constant(ctx.rng.random((16, 16), dtype="float32"))

    @tf.function  # type: ignore[untyped-decorator]
    def step(x: Any) -> Any:
        at_home = tf.matmul(x, x, name="at_home")
        with tf.device("/device:CPU:1"):
            away = tf.matmul(at_home, x, name="planted")
        return tf.reduce_sum(away + at_home)

    while True:
        yield step(rows)
