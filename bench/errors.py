"""Every error that a user can cause or meet, and the exit code each ends with.

    DevbenchError                1   something we promised did not happen
    ├── RunFailed                1   a worker failed; the result on disk says how
    ├── UsageError               2   the request itself can't be met
    │   ├── SettingsError        2   an option, variable or file key is wrong
    │   ├── UnknownName          2   no such workload, parameter, backend or loop
    │   ├── WorkloadError        2   a user's file does not import or lacks the protocol
    │   ├── NotApplicable        2   this workload can't be driven by that loop
    │   ├── DataError            2   a data file is absent, unreadable or wrong
    │   └── OutputError          2   results can't be written there
    ├── DeviceAbsent             3   the backend's device is not there
    ├── NotComparable            4   results differ in more than what is compared
    ├── SlowerThanAllowed        5   `--fail-on slower`, and it is
    └── Interrupted        130/143   SIGINT or SIGTERM; what was measured is kept

A message says what happened and to what; `hint` says what to do about it. The command line prints
both and never a traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any


def nearest(name: str, known: Iterable[str]) -> str:
    """The sentence that offers the known names nearest to one that is not known, or else all of them."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=2, cutoff=0.6)
    return f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(names)}."


class DevbenchError(Exception):
    """Base of all errors above.

    Args:
        message: what happened, to what, in one sentence.
        hint: what the user can do about it; may be several lines.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class RunFailed(DevbenchError):
    """At least one spec has no usable measurement."""


class UsageError(DevbenchError):
    """The request can't be met as it stands."""

    exit_code = 2


class SettingsError(UsageError):
    """A setting has a wrong name or value."""


class UnknownName(UsageError):
    """A name that nothing answers to; the nearest ones are offered."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        super().__init__(f"no {kind} named '{name}'", f"{nearest(name, sorted(known))} {hint}".strip())


class WorkloadError(UsageError):
    """A workload's file can't be used; the message carries its own line."""


class NotApplicable(UsageError):
    """A workload has nothing that the asked loop could drive."""


class DataError(UsageError):
    """Input data is absent, unreadable or of the wrong shape."""


class OutputError(UsageError):
    """The output folder can't be written."""


class DeviceAbsent(DevbenchError):
    """The backend's device is not there; the hint says how to get it."""

    exit_code = 3


class NotComparable(DevbenchError):
    """Results that it would be unfair to compare; the hint says what differs."""

    exit_code = 4


class SlowerThanAllowed(DevbenchError):
    """A comparison that was asked to fail when something became slower."""

    exit_code = 5


class Interrupted(DevbenchError):
    """A signal ended the run early.

    Args:
        signum: the signal's number; the exit code is 128 + signum, as shells have it.
        results: What was measured until then.
        document: The explanation or sweep so far. None if there is none.
    """

    def __init__(self, signum: int, results: Iterable[Any] = (), document: Any = None) -> None:
        self.document = document
        self.signum = signum
        self.exit_code = 128 + signum
        self.results: Sequence[Any] = tuple(results)
        kept = "interrupted: what was measured is kept and marked partial"
        super().__init__(kept if self.results else "interrupted before anything was measured")
