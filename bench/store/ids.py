"""Ids of results, groups, explanations and runs."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime, timezone
from itertools import count


def new_id() -> str:
    """Return a unique id: the time in UTC to the millisecond, so that ids sort, and 8 random hexadecimal digits."""
    now = datetime.now(timezone.utc)
    return f"{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}-{secrets.token_hex(4)}"


def namer(run_id: str | None) -> Callable[[], str]:
    """Return a function that makes the ids of a run.

    Without `run_id`, ids are random. Otherwise, an id is `run_id` with a number, so each attempt makes the same ids.

    Args:
        run_id: The id of what requested the run, such as a Job's UID and index.
    """
    if run_id is None:
        return new_id
    numbers = count(1)
    return lambda: f"{run_id}-{next(numbers):03d}"
