"""A training with arrays, a compiled model and its own call of `fit`."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from bench.workloads import Context


class Params(BaseModel):
    batch: int = 16
    epochs: int = 3
    rows: int = 2040  # 127 full batches and a partial batch of 8


def data(p: Params, ctx: Context) -> Any:
    rows = ctx.rng.random((p.rows, 8))
    return rows, rows.sum(axis=1, keepdims=True)


def model() -> Any:
    import tensorflow as tf

    network = tf.keras.Sequential([
        tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(1),
    ])  # fmt: skip
    network.compile(optimizer="sgd", loss="mse", metrics=["mae"])
    return network


def as_written(p: Params, model: Any, data: Any) -> Any:
    return model.fit(*data, epochs=p.epochs, batch_size=p.batch, verbose=2)


def evaluate(model: Any, data: Any) -> dict[str, float]:
    return {"test_loss": float(model.evaluate(*data, verbose=0)[0])}
