"""Plain text: without control characters, wrapped, and in lists."""

from __future__ import annotations

import re
import textwrap

WIDTH = 80
"""Characters: the usual width of a terminal."""

_ANSI = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])")
"""Escape sequences for colours and titles, which the last lines of a worker may contain."""


def plain(text: str) -> str:
    """Return a line without escape sequences, and with spaces in place of other control characters."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " for character in _ANSI.sub("", text))


def encodable(text: str, encoding: str | None) -> str:
    """Return a text with simpler characters where an encoding, such as that of a file on Windows, lacks some."""
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return text.replace("─", "-").replace("→", ">").replace("−", "-")
    return text


def filled(line: str, width: int, indent: int = 0) -> list[str]:
    """Break a line at `width` characters. The lines after the first are indented by two more spaces."""
    margin = " " * indent
    lines = textwrap.wrap(line, width, initial_indent=margin, subsequent_indent=margin + "  ", break_on_hyphens=False)
    return lines or [margin]


def wrapped(text: str, width: int, indent: int = 0, keep_spaces: bool = False) -> str:
    """Return a text wrapped at `width` characters, without control characters.

    Args:
        text: one paragraph.
        width: maximum length of a line, in characters.
        indent: spaces before the first line; the others have two more.
        keep_spaces: whether to keep runs of spaces, as in the output of a program.
    """
    line = plain(text)
    return "\n".join(filled(line if keep_spaces else " ".join(line.split()), width, indent))


def entry(label: str, text: str, indent: int, column: int, width: int = WIDTH) -> str:
    """Return a label with its text wrapped beside it. A label that is too long has a line of its own.

    Args:
        label: the label.
        text: the text. Its line breaks are kept.
        indent: spaces before the label.
        column: characters before the text.
        width: maximum length of a line, in characters.
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
