"""Read the marks of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


def capabilities(item: pytest.Item) -> Iterator[str]:
    """Return the capabilities that a test needs."""
    for mark in item.iter_markers("needs"):
        yield from mark.args
