"""A step that needs 4 MB of memory per example of the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from pydantic import BaseModel


class Params(BaseModel):
    batch: int = 1


def inputs() -> Any:
    return (np.float32(1.0),)


def step(p: Params) -> Any:
    def run(x: Any) -> Any:
        return tf.reduce_max(tf.random.stateless_uniform((p.batch, 1_000_000), (1, 2)) * x)

    return run
