"""Replaces attributes of TensorFlow's and Keras' classes for a while. Worker's side only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def patched(kind: Any, **replacements: Any) -> Iterator[None]:
    """Replace attributes of a class in this context. Those that it inherits are inherited again afterwards.

    Args:
        kind: the class.
        replacements: the new attributes by name.
    """
    originals = {name: vars(kind)[name] for name in replacements if name in vars(kind)}
    for name, replacement in replacements.items():
        setattr(kind, name, replacement)
    try:
        yield
    finally:
        for name in replacements:
            if name in originals:
                setattr(kind, name, originals[name])
            else:
                delattr(kind, name)
