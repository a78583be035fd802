"""Finds a number in what a step of a script returned. Reading it shows that the step is done."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.worker.script.calls import Updated


def number_in(tf: Any, value: Any) -> Any:
    """Return the part of a value that can be read as a number: its first scalar, or its first array.

    Returns:
        `value` itself if it holds trainable variables. 0.0 if there is no number, so that nothing can be waited for.
    """
    if isinstance(value, Updated) or hasattr(value, "trainable_variables"):
        return value
    parts = [part for part in tf.nest.flatten(value) if _is_number(part)]
    scalars = [part for part in parts if not np.shape(part)]
    return next(iter([*scalars, *parts]), 0.0)


def _is_number(part: Any) -> bool:
    if isinstance(part, (float, int)) and not isinstance(part, bool):
        return True
    dtype = getattr(part, "dtype", None)
    shape = getattr(part, "shape", None)
    if dtype is None or shape is None or not hasattr(part, "__array__"):
        return False
    return "float" in str(getattr(dtype, "name", dtype)) and all(side not in (0, None) for side in shape)
