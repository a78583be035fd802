"""Initial weights from NumPy, so that every device and every version of TensorFlow starts from the same model."""

from __future__ import annotations

from typing import Any


def draw(model: Any, seed: int) -> None:
    """Draw the random weights of a model again, by Glorot and Bengio (2010): uniform, with Keras' fans.

    Weights that their initializer set to a constant, such as biases and scales, are not changed. Neither are integers,
    such as tables of indices.

    Args:
        model: a built Keras model.
        seed: the spec's seed.
    """
    import numpy as np

    rng = np.random.default_rng([seed, 1])
    weights = []
    for value in model.get_weights():
        if value.ndim >= 2 and value.dtype.kind not in "iub" and float(value.std()) > 0:
            receptive_field = int(np.prod(value.shape[:-2]))
            limit = np.sqrt(6.0 / (receptive_field * (value.shape[-2] + value.shape[-1])))
            value = rng.uniform(-limit, limit, value.shape).astype(value.dtype)
        weights.append(value)
    model.set_weights(weights)
