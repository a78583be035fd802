"""Why TensorFlow traced a function again: what differs between the arguments of two traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from bench.model.facts import ReasonKind, TraceReason

MOST_LEAVES = 100
"""Number of values in nested arguments that are compared."""

LONGEST_TEXT = 40
"""Longer values are cut."""


class _TracedValue(NamedTuple):
    """A value in an argument. A tensor has a dtype and a shape, and another object has its type instead of a shape.

    `same_as` is equal for values that need no new trace.
    """

    dtype: str
    shape: str
    text: str
    same_as: object


class TraceReasons:
    """Compares the arguments of each trace of a function with those of the trace before it."""

    def __init__(self) -> None:
        self._last: dict[object, dict[str, _TracedValue]] = {}
        self._seen: dict[object, Counter[tuple[ReasonKind, str]]] = {}
        self._latest: dict[tuple[object, ReasonKind, str], TraceReason] = {}

    def add(self, key: object, names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Add a trace.

        Args:
            key: stands for the function.
            names: of its positional parameters.
            args: its positional arguments. TensorFlow replaces tensors by placeholders of the same shape and dtype.
            kwargs: its other arguments.
        """
        leaves = dict(_all_leaves(names, args, kwargs))
        before = self._last.get(key)
        self._last[key] = leaves
        if before is None:
            return
        reason = _difference(before, leaves)
        if reason.kind == "new function" and len(leaves) == MOST_LEAVES:
            return  # a value that is not compared may differ
        self._seen.setdefault(key, Counter()).update([(reason.kind, reason.argument)])
        self._latest[key, reason.kind, reason.argument] = reason

    def typical(self, key: object) -> TraceReason | None:
        """Return the latest of the most frequent reasons of a function. None if it was traced at most once."""
        if key not in self._seen:
            return None
        ((kind, argument), _), *_ = self._seen[key].most_common(1)
        return self._latest[key, kind, argument]


def _difference(before: Mapping[str, _TracedValue], after: Mapping[str, _TracedValue]) -> TraceReason:
    """Return the first difference between the arguments of two traces."""
    for name, new in after.items():
        old = before.get(name)
        if old is None:
            return TraceReason(kind="structure", argument=name)
        if (old.dtype, old.shape) != (new.dtype, new.shape):
            if not old.dtype or not new.dtype:
                return TraceReason(kind="structure", argument=name)
            if old.dtype != new.dtype:
                return TraceReason(kind="dtype", argument=name, before=old.dtype, after=new.dtype)
            return TraceReason(kind="shape", argument=name, before=old.shape, after=new.shape)
        if old.same_as != new.same_as:
            is_value = bool(old.text and new.text)
            return TraceReason(kind="value" if is_value else "object", argument=name, before=old.text, after=new.text)
    gone = next((name for name in before if name not in after), "")
    return TraceReason(kind="structure" if gone else "new function", argument=gone)


def _all_leaves(
    names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Iterator[tuple[str, _TracedValue]]:
    """Return at most `MOST_LEAVES` values in the arguments of a function, with their names."""
    if len(args) == len(names) - 1 and names[0] == "self":  # a method that is bound already
        names = names[1:]
    named = [(names[n] if n < len(names) else f"argument {n + 1}", value) for n, value in enumerate(args)]
    leaves = (leaf for name, value in [*named, *kwargs.items()] for leaf in _leaves(name, value))
    return islice(leaves, MOST_LEAVES)


def _leaves(name: str, value: Any) -> Iterator[tuple[str, _TracedValue]]:
    """Yield the values in an argument, with their names, such as `rows["user"]`."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(f"{name}[{key!r}]", item)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _leaves(f"{name}[{index}]", item)
    elif hasattr(value, "shape") and hasattr(value, "dtype"):
        dtype = str(getattr(value.dtype, "name", value.dtype))
        yield name, _TracedValue(dtype, str(value.shape), "", None)
    elif value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        text = repr(value)
        yield name, _TracedValue("", "", text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…", value)
    else:
        yield name, _TracedValue("", type(value).__name__, "", id(value))
