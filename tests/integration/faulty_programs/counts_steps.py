"""A program whose slow steps each write a byte into the pipe that STEPS names, so that a test can count them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any


def inputs(ctx: Any) -> Any:
    return (ctx.rng.random(10),)


def step() -> Callable[[Any], Any]:
    return lambda x: x * 2.0


def as_written() -> Iterator[Any]:
    import tensorflow as tf

    pipe = os.open(os.environ["STEPS"], os.O_WRONLY)
    while True:
        time.sleep(0.02)
        os.write(pipe, b".")
        yield tf.constant(1.0) + 1.0
