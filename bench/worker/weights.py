"""Weights from NumPy, so that every device and every version of TensorFlow starts from the same model."""

from __future__ import annotations

from typing import Any


def draw(model: Any, seed: int) -> None:
    """Draws a model's random weights anew (Glorot and Bengio 2010, uniform, fans as Keras counts them).

    Weights that their initialiser made constant (biases, scales) stay as they are.

    Args:
        model: a built Keras model.
        seed: the spec's seed.
    """
    import numpy as np

    rng = np.random.default_rng([seed, 1])
    drawn = []
    for value in model.get_weights():
        if value.ndim >= 2 and float(value.std()) > 0:
            receptive = int(np.prod(value.shape[:-2]))
            limit = np.sqrt(6.0 / (receptive * (value.shape[-2] + value.shape[-1])))
            value = rng.uniform(-limit, limit, value.shape).astype(value.dtype)
        drawn.append(value)
    model.set_weights(drawn)
