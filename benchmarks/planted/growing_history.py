"""A loop that averages all losses so far after each step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context

CAUSE = r"longer and longer"


class Params(BaseModel):
    planted: bool = True


@tf.function  # type: ignore[untyped-decorator]
def loss_of(rows: Any) -> Any:
    return tf.reduce_mean(rows**2)


def as_written(p: Params, ctx: Context) -> Iterator[Any]:
    rows = tf.constant(ctx.rng.random((16, 8), dtype="float32"))
    losses: list[Any] = []
    while True:
        losses.append(loss_of(rows))
        yield sum(float(loss) for loss in losses) / len(losses) if p.planted else float(losses[-1])
