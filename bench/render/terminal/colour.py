"""Whether output is in colour. `NO_COLOR` and `FORCE_COLOR` decide as in most programs; else a terminal has colour."""

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
