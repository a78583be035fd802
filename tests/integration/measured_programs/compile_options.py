"""A training whose parameters set several steps per call, or eager execution."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from bench.workloads import Context


class Params(BaseModel):
    batch: int = 16
    steps_per_execution: int = 1
    run_eagerly: bool = False
    rows: int = 1600


def data(p: Params, ctx: Context) -> Any:
    rows = ctx.rng.random((p.rows, 8), dtype="float32")
    return rows, rows.sum(axis=1, keepdims=True)


def model(p: Params) -> Any:
    import tensorflow as tf

    network = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
    network.compile(optimizer="sgd", loss="mse", steps_per_execution=p.steps_per_execution, run_eagerly=p.run_eagerly)
    return network


def as_written(p: Params, model: Any, data: Any) -> None:
    model.fit(*data, batch_size=p.batch, epochs=100, verbose=0)
