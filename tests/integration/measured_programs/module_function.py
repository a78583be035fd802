"""A loop around a `tf.function` of the module. It is already traced when devbench inspects the step again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import tensorflow as tf
from pydantic import BaseModel


class Params(BaseModel):
    compiler: Literal["none", "xla"] = "none"


@tf.function  # type: ignore[untyped-decorator]
def plain(value: Any) -> Any:
    return tf.tanh(tf.matmul(value, value))


compiled = tf.function(lambda value: tf.tanh(tf.matmul(value, value)), jit_compile=True)


def as_written(p: Params) -> Iterator[Any]:
    function = compiled if p.compiler == "xla" else plain
    value = tf.random.normal((64, 64), seed=1)
    while True:
        value = function(value)
        yield value
