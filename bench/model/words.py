"""Words in sentences: lists, and numbers with their nouns."""

from __future__ import annotations

from collections.abc import Sequence


def count(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun, such as "1 result" and "2,000 results"."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def join_words(words: Sequence[str]) -> str:
    """Return words as a sentence lists them: "a, b and c"."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
