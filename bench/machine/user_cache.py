"""The user's cache, for what is measured or made once per machine."""

from __future__ import annotations

import os
from pathlib import Path


def folder() -> Path:
    """Return devbench's folder in the user's cache. It may not exist."""
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(home) if home else Path.home() / ".cache") / "devbench"
