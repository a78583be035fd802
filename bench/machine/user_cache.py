"""The user's cache. It holds what is measured or made only once on a machine, such as peaks and environments."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def folder() -> Path:
    """Return devbench's folder in the user's cache. It may not exist."""
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(home) if home else Path.home() / ".cache") / "devbench"


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield a path at which the caller makes a folder, and rename the folder to the target afterwards.

    If the caller raises an error, the folder is removed. If another process has made the target in the meantime, that
    target is kept.

    Args:
        target: Where the folder belongs. It does not exist yet.

    Raises:
        OSError: The folder cannot be moved.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="new-") as scratch:
        made = Path(scratch) / target.name
        yield made
        try:
            made.rename(target)
        except OSError:
            if not target.is_dir():
                raise
