"""Ask the device for more memory than it has. A workload: `devbench run benchmarks/out_of_memory.py --backend cuda`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, Field


class Params(BaseModel):
    """The size of the request."""

    gib: int = Field(4096, ge=1, le=2**20, description="memory to ask for, GiB")


def inputs() -> Any:
    """Return the value with which the array is filled."""
    import numpy as np

    return (np.float32(1.0),)


def step(p: Params) -> Callable[[Any], Any]:
    """Return a function that makes one array of this size."""
    import tensorflow as tf

    return lambda value: tf.fill((p.gib, 2**28), value)[0, 0]
