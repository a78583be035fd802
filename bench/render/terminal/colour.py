"""Decides whether output is in colour.

`NO_COLOR` and `FORCE_COLOR` decide it, as in most programs. Without them, output is in colour if it goes to a terminal.
"""

from __future__ import annotations

import os
from typing import TextIO


def has_colour(stream: TextIO) -> bool:
    """Return whether to write to a stream in colour."""
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR")
    if forced:
        return forced != "0"
    return stream.isatty() and os.environ.get("TERM") != "dumb"
