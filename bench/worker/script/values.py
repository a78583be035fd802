"""Finds a number in what a step of a script returned. Reading it shows that the step is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.worker.script.calls import Updated


def number_in(tf: Any, value: Any) -> Any:
    """Return the part of a value that can be read as a number: the loss of a dict with one, otherwise the first number.

    Numbers with a fraction come before whole numbers, and scalars before arrays.

    Returns:
        `value` itself if it holds trainable variables. 0.0 if there is no number, so that nothing can be waited for.
    """
    if isinstance(value, Updated) or hasattr(value, "trainable_variables"):
        return value
    if isinstance(value, Mapping) and "loss" in value:
        value = value["loss"]
    try:
        found = tf.nest.flatten(value)
    except TypeError:  # it sorts the keys of dicts
        found = leaves(value)
    return min(filter(_is_number, found), key=_order, default=0.0)


def leaves(nested: Any) -> Iterator[Any]:
    """Yield the leaves of nested lists, tuples and dicts. A monitored session has dicts whose keys cannot be sorted."""
    if isinstance(nested, Mapping):
        nested = list(nested.values())
    if isinstance(nested, (list, tuple)):
        for part in nested:
            yield from leaves(part)
    else:
        yield nested


def _is_number(part: Any) -> bool:
    if isinstance(part, (float, int)):
        return not isinstance(part, bool)
    shape = getattr(part, "shape", None)
    if shape is None or not hasattr(part, "__array__"):
        return False
    return any(kind in _dtype(part) for kind in ("float", "int")) and all(side not in (0, None) for side in shape)


def _order(part: Any) -> tuple[bool, bool]:
    return "float" not in _dtype(part), len(getattr(part, "shape", ())) > 0


def _dtype(part: Any) -> str:
    """Return the name of the dtype of a number, such as "float32" or "int"."""
    dtype = getattr(part, "dtype", type(part).__name__)
    return str(getattr(dtype, "name", dtype))
