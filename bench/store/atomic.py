"""Writes files completely or not at all: a file gets a temporary name first, and is then moved into place."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.errors import OutputError


def write_text(path: Path, pieces: Iterable[str]) -> int:
    """Write a text to a file. An error leaves the old file unchanged.

    Args:
        path: The file.
        pieces: The parts of the text, in order.

    Returns:
        The number of bytes.

    Raises:
        OutputError: The file cannot be written.
    """
    size = 0
    try:
        with replacement(path) as temporary, temporary.open("xb") as file:
            for piece in pieces:
                size += file.write(piece.encode())
    except OSError as error:
        raise OutputError(
            f"cannot write {path}: {error.strerror or error}", "Choose another file with --output."
        ) from None
    return size


def write_durably(path: Path, data: bytes) -> None:
    """Write a new file, and wait until it is on the disk.

    Raises:
        OSError: The file exists or cannot be written.
    """
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def replacement(path: Path) -> Iterator[Path]:
    """Yield the name of a temporary file for the block to write.

    At the end of the block, the file is moved to `path`. After an error it is removed.

    Raises:
        OSError: The block has written no file, or the file cannot be moved.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield temporary
        _replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _replace(temporary: Path, path: Path) -> None:
    """Move a file onto another. Windows refuses this while a process reads the other, so try several times there."""
    for pause in (0.01, 0.05, 0.2, 1.0) if sys.platform == "win32" else ():
        try:
            temporary.replace(path)
        except PermissionError:
            time.sleep(pause)
        else:
            return
    temporary.replace(path)
