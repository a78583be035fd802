"""Matrix products whose loops cross: `as-written` has 512 rows, `step` has 64 at size 1 and 1024 at size 2.

At size 2 the loops differ so much that two trials are enough for a verdict, even on a noisy machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from pydantic import BaseModel


class Params(BaseModel):
    size: int = 1


def inputs() -> Any:
    return (np.float32(1.0),)


def step(p: Params) -> Any:
    def run(x: Any) -> Any:
        return product(x, 64 * 16 ** (p.size - 1))

    return run


def as_written() -> Iterator[Any]:
    run = tf.function(lambda x: product(x, 512))
    while True:
        yield run(tf.constant(1.0))


def product(x: Any, side: int) -> Any:
    value = tf.fill((side, side), x / side)
    for _ in range(4):
        value = value @ value
    return tf.reduce_sum(value)
