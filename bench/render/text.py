"""Lines of text for a terminal: what may stand in one, and how a long one is broken."""

from __future__ import annotations

import re
import textwrap

_ANSI = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])")
"""Colours and titles that a worker's last lines may carry."""


def plain(text: str) -> str:
    """A line without colours and control characters, wherever it came from."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else " " for each in _ANSI.sub("", text))


def filled(line: str, width: int, indent: int = 0) -> list[str]:
    """A line in several of at most `width` characters, the second and further ones two deeper; never none."""
    first, rest = " " * indent, " " * (indent + 2)
    return textwrap.wrap(line, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False) or [first]
