"""All errors that a user can meet, and the exit code of each.

    DevbenchError                1   any other failure
    ├── RunFailed                1   a worker failed; its result says why
    ├── UsageError               2   the request is invalid
    │   ├── SettingsError        2   an option, variable or file key is invalid
    │   ├── UnknownName          2   no such workload, parameter, backend or loop
    │   ├── WorkloadError        2   a user's file cannot be imported or lacks the protocol
    │   ├── NotApplicable        2   the workload does not support the loop
    │   ├── DataError            2   a data file is missing, unreadable or wrong
    │   └── OutputError          2   the output folder cannot be written
    ├── DeviceAbsent             3   the backend's device is not available
    ├── NotComparable            4   the comparison would be unfair
    ├── SlowerThanAllowed        5   `--fail-on slower`, and a result is slower
    └── Interrupted        130/143   SIGINT or SIGTERM; results so far are kept

A message says what happened, and to what. The hint says what to do. The command line prints both, and no traceback.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable, Sequence
from typing import Any

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers of a full disk and of an exceeded disk quota."""


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Return a sentence that offers the candidates most similar to a name, or all of them if none is similar."""
    names = list(candidates)
    matches = difflib.get_close_matches(name, names, n=2, cutoff=0.6)
    return f"Did you mean {' or '.join(matches)}?" if matches else f"Use one of {', '.join(names)}."


class DevbenchError(Exception):
    """Failure that has no exit code of its own.

    Args:
        message: What happened, and to what, in one sentence.
        hint: What the user can do about it, in one or more lines.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class RunFailed(DevbenchError):
    """At least one measurement failed."""


class UsageError(DevbenchError):
    """The request is invalid."""

    exit_code = 2


class SettingsError(UsageError):
    """A setting has an invalid name or value."""


class UnknownName(UsageError):
    """A name does not exist. The hint offers the nearest ones."""

    def __init__(self, kind: str, name: str, candidates: Iterable[str], hint: str = "") -> None:
        super().__init__(f"no {kind} named '{name}'", f"{nearest(name, sorted(candidates))} {hint}".strip())


class WorkloadError(UsageError):
    """A workload's file cannot be used. The message names the line."""


class NotApplicable(UsageError):
    """A workload does not support a loop, backend or dtype."""


class DataError(UsageError):
    """Input data is missing, unreadable or of the wrong shape."""


class OutputError(UsageError):
    """A folder cannot be written, such as the one for results."""


class DeviceAbsent(DevbenchError):
    """The backend's device is not available. The hint says how to make it available."""

    exit_code = 3


class NotComparable(DevbenchError):
    """Comparing the results would be unfair. The hint says what differs."""

    exit_code = 4


class SlowerThanAllowed(DevbenchError):
    """A result is slower, and `--fail-on slower` is set."""

    exit_code = 5


class Interrupted(DevbenchError):
    """A signal ended the run early.

    Args:
        signum: Number of the signal. The exit code is 128 + signum, as in a shell.
        results: The results so far.
        document: The outcome, explanation or sweep so far. None if there is none.
        message: What is left of the command, if it is not one that measures.
    """

    def __init__(self, signum: int, results: Iterable[Any] = (), document: Any = None, message: str = "") -> None:
        self.document = document
        self.signum = signum
        self.exit_code = 128 + signum
        self.results: Sequence[Any] = tuple(results)
        partial = any(getattr(result, "status", "partial") == "partial" for result in self.results)
        kept = "interrupted: the results so far were kept" + (" and marked as partial" if partial else "")
        super().__init__(message or (kept if self.results else "interrupted before the first result"))
