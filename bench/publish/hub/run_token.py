"""Tokens that may only write the documents of one run. A measured program can read the token of its run.

A run token is the run's id and a keyed hash of it (HMAC-SHA256). The key is the hash of a token of the hub, so the hub
checks a run token without storing it. It is valid as long as the token that it was made from.
"""

from __future__ import annotations

import hashlib
import hmac
import re

SEPARATOR = "~"
"""Separates the run's id, which cannot contain it, from the hash."""

PURPOSE = b"devbench run token\n"
"""What the hash is for. A hash for another purpose is no run token."""


def make(token: str, run_id: str) -> str:
    """Return the run token of a run.

    Args:
        token: a token that may write everything.
        run_id: the run.
    """
    return f"{run_id}{SEPARATOR}{_code(key(token), run_id)}"


def key(token: str) -> bytes:
    """Return the key that checks the run tokens made from a token: its SHA-256."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def run_of(text: str, keys: tuple[bytes, ...]) -> str | None:
    """Return the id of the run that a run token may write. None if it is not valid for any of the keys."""
    run_id, _, code = text.rpartition(SEPARATOR)
    given = code.encode("utf-8", "surrogateescape")
    valid = [hmac.compare_digest(given, _code(each, run_id).encode()) for each in keys]  # all, in constant time
    return run_id if run_id and any(valid) else None


def is_own(run_id: str, document_id: str) -> bool:
    """Return whether the id of a result, a group or an explanation is one that `store.ids.namer` makes for a run."""
    return re.fullmatch(rf"{re.escape(run_id)}-\d{{3,}}", document_id) is not None


def _code(each: bytes, run_id: str) -> str:
    return hmac.new(each, PURPOSE + run_id.encode("utf-8", "surrogateescape"), "sha256").hexdigest()
