"""A step with one product pinned to another device. The CPU is split into two logical devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from bench.workloads import Context

context._reset_context()  # devbench has started TensorFlow, and only an unused context can split a device
half = tf.config.LogicalDeviceConfiguration()
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], [half, half])


def as_written(ctx: Context) -> Iterator[Any]:
    rows = tf.constant(ctx.rng.random((16, 16), dtype="float32"))

    @tf.function  # type: ignore[untyped-decorator]
    def step(x: Any) -> Any:
        placed = tf.matmul(x, x, name="placed")
        with tf.device("/device:CPU:1"):
            moved = tf.matmul(placed, x, name="planted")
        return tf.reduce_sum(moved + placed)

    while True:
        yield step(rows)
