"""Lists of words in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def join_words(words: Sequence[str]) -> str:
    """Return words as a sentence lists them: "a, b and c"."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
