"""Plain text in two columns, within the terminal's usual 80: for lists that need no frame."""

from __future__ import annotations

import textwrap

WIDTH = 80


def entry(label: str, text: str, indent: int, column: int, width: int = WIDTH) -> str:
    """A label and its text, wrapped beside it; a label that is too long stands on a line of its own.

    Args:
        label: what stands at `indent`.
        text: may hold line breaks, which are kept.
        indent: spaces before the label.
        column: where the text begins.
        width: where it is wrapped.
    """
    margin = " " * column
    lines = [
        part
        for line in text.splitlines() or [""]
        for part in textwrap.wrap(line, width - column, break_on_hyphens=False) or [""]
    ]
    head = " " * indent + label
    if len(head) >= column:
        return "\n".join([head, *(margin + line for line in lines)]).rstrip()
    return "\n".join([head.ljust(column) + lines[0], *(margin + line for line in lines[1:])]).rstrip()
