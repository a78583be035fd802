"""The user's cache. It holds what is measured or made only once on a machine, such as peaks and environments."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.errors import OutputError, SettingsError


def folder() -> Path:
    """Return devbench's folder in the user's cache. It may not exist.

    Raises:
        SettingsError: The user has no home folder, such as an arbitrary user of a container.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    try:
        return (Path(cache) if cache else Path.home() / ".cache") / "devbench"
    except RuntimeError:
        raise SettingsError("this user has no home folder, which holds devbench's cache", FIX) from None


FIX = "Set XDG_CACHE_HOME to a folder that can be written."


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield a path at which the caller makes a folder, and rename the folder to the target afterwards.

    If the caller raises an error, the folder is removed. If another process has made the target in the meantime, that
    target is kept.

    Args:
        target: Where the folder belongs. It does not exist yet.

    Raises:
        OutputError: The cache cannot be written.
        OSError: The folder cannot be moved.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        new = tempfile.TemporaryDirectory(dir=target.parent, prefix="new-")
    except OSError as error:
        message = f"cannot write devbench's cache in {target.parent}: {error.strerror or error}"
        raise OutputError(message, FIX) from None
    with new as scratch:
        made = Path(scratch) / target.name
        yield made
        try:
            made.rename(target)
        except OSError:
            if not target.is_dir():
                raise
