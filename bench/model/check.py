"""One line of `devbench doctor`, in the words that backends and machine share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Status = Literal["PASS", "WARN", "FAIL", "SKIP"]


@dataclass(frozen=True)
class Check:
    """What was looked at, what was found and why, and what to do about it.

    Attributes:
        name: what was looked at, in a few words.
        status: PASS; WARN where a run works but its figures suffer; FAIL where it can't work; SKIP where
            there was nothing to look at.
        found: what was found; where the status is FAIL or WARN, this is the cause.
        fix: what to do; empty where nothing needs doing.
    """

    name: str
    status: Status
    found: str
    fix: str = ""


def guarded(name: str, look: Callable[[], Iterable[Check]]) -> Iterator[Check]:
    """The checks that `look` makes; what it raises becomes one more line, so that doctor always finishes.

    Args:
        name: the name of that line.
        look: makes the checks, and may raise anything.
    """
    try:
        yield from look()
    except Exception as error:  # a check that fails on a machine nobody thought of must not end the others
        yield Check(name, "WARN", f"could not be looked at: {type(error).__name__}: {error}", "please report this")
