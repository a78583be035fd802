"""Read the marks of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


def capabilities(item: pytest.Item) -> Iterator[str]:
    """Return the capabilities that a test needs."""
    for mark in item.iter_markers("needs"):
        yield from mark.args


def group_of(item: pytest.Item) -> str | None:
    """Return the group (`inputs.py`) of a test, or None."""
    mark = item.get_closest_marker("group")
    return mark.args[0] if mark else None
