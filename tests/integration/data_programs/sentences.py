"""A model of sentences, each batch of which is padded to a length of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from pydantic import BaseModel

from bench.workloads import Context


class Params(BaseModel):
    rows: int = 640
    batch: int = 64
    epochs: int = 2


def data(p: Params, ctx: Context) -> Any:
    lengths = np.repeat(np.arange(5, 5 + p.rows // p.batch), p.batch)
    words = tf.RaggedTensor.from_row_lengths(ctx.rng.integers(1, 100, lengths.sum()), lengths)
    labels = ctx.rng.integers(0, 2, p.rows).astype("float32")
    sentences = tf.data.Dataset.from_tensor_slices((words, labels))
    return sentences.map(lambda row, label: (row, label)).padded_batch(p.batch, padded_shapes=([None], []))


def model() -> Any:
    network = tf.keras.Sequential([
        tf.keras.Input(shape=(None,), dtype="int64"),
        tf.keras.layers.Embedding(100, 8),
        tf.keras.layers.GlobalAveragePooling1D(),
        tf.keras.layers.Dense(1, activation="sigmoid"),
    ])  # fmt: skip
    network.compile(optimizer="sgd", loss="binary_crossentropy")
    return network
