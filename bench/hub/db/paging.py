"""Pages of lists, and the cursors that lead from one page to the next."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from bench.hub.problems import Problem

T = TypeVar("T")


@dataclass(frozen=True)
class ListPage(Generic[T]):
    """A page of a list.

    Args:
        items: the items on this page.
        next: the cursor of the next page. None if this is the last one.
    """

    items: Sequence[T]
    next: str | None


def encode(*position: Any) -> str:
    """Return the cursor of a position: whole numbers and, last, an id."""
    return base64.urlsafe_b64encode(" ".join(map(str, position)).encode()).decode().rstrip("=")


def decode(cursor: str, count: int) -> tuple[Any, ...]:
    """Return the `count` parts of a cursor: whole numbers and, last, an id.

    Raises:
        Problem: the cursor is invalid.
    """
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        *digits, id_ = text.split(" ", count - 1)
        numbers = [int(part) for part in digits]
    except (binascii.Error, ValueError):
        numbers, id_ = [], ""
    if not id_.isprintable() or not id_ or len(numbers) < count - 1 or not all(0 <= n < 2**63 for n in numbers):
        raise Problem(400, "invalid-cursor", "the cursor is invalid", "Use `next` of the previous page.")
    return *numbers, id_
