"""One check of `devbench doctor`, as backends and machine report it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from bench.errors import Interrupted

Status = Literal["PASS", "WARN", "FAIL", "SKIP"]


@dataclass(frozen=True)
class Check:
    """The outcome of one check.

    Attributes:
        name: what was checked, in a few words.
        status: PASS; WARN if a run works but its figures suffer; FAIL if a run cannot work; SKIP if there was nothing
            to check.
        detail: what the check saw. For WARN and FAIL, this is the cause.
        fix: what to do, one step a line; empty if there is nothing to do.
    """

    name: str
    status: Status
    detail: str
    fix: str = ""


def run_check(name: str, check: Callable[[], Iterable[Check]]) -> Iterator[Check]:
    """Yield the results of a check. If it raises an error, yield a WARN instead, so that doctor always finishes.

    Args:
        name: name of that WARN.
        check: yields results, and may raise anything.

    Raises:
        Interrupted: a signal arrived during the check.
    """
    try:
        yield from check()
    except Interrupted:
        raise
    except Exception as error:  # an unforeseen machine must not end the other checks
        message = f"this check failed: {type(error).__name__}: {error}"
        yield Check(name, "WARN", message, "Please report this as a bug.")
