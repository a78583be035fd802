"""The lines of the program that a fact names. Worker's side only."""

from __future__ import annotations

from collections import Counter
from typing import Any

from bench.worker.frames import SourceLine

MAX_NAMES = 5
"""Maximum number of lines, or of types of operations, in a fact."""


def lines_of(counts: Counter[SourceLine]) -> dict[str, Any]:
    """Return the fields `lines` and `elsewhere` of a fact."""
    sources = sorted(source for source, _ in counts.most_common(MAX_NAMES) if source.line)
    elsewhere: dict[str, list[int]] = {}
    for source in sources:
        if source.file:
            elsewhere.setdefault(source.file, []).append(source.line)
    return {"lines": [source.line for source in sources if not source.file], "elsewhere": elsewhere}
