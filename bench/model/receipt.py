"""The receipt: how a hub answers a document."""

from __future__ import annotations

from typing import Literal, get_args

WriteOutcome = Literal["created", "updated", "same", "superseded"]
"""The document is new, replaces an earlier state, is already stored, or is ignored because a later state is stored."""

WRITE_OUTCOMES: tuple[WriteOutcome, ...] = get_args(WriteOutcome)
