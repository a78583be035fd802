"""Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NONE = "–"
"""The text of a cell without a value."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table. Pipes in cells are escaped."""
    cells = [head, *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    first, *others = ("| " + " | ".join(row) + " |" for row in cells)
    return "\n".join([first, "|" + "---|" * len(head), *others]) + "\n"
