"""The sources in a folder: what changes if a user edits a program or a package."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

SUFFIXES = frozenset(
    (".c", ".cc", ".cfg", ".cpp", ".cu", ".h", ".hpp", ".in", ".ipynb", ".pxd", ".py", ".pyi", ".pyx", ".rs", ".toml")
)
"""Suffixes of files that people write. Nothing else counts, because a build or a run may write it beside them."""

INSTALLED = ("site-packages", "node_modules")
"""Names of folders with packages of others."""

OF_AN_ENVIRONMENT = ("pyvenv.cfg", "conda-meta")
"""What a folder with a Python environment has."""


def digest(path: Path) -> str:
    """Return a hash of a file, or of the names and texts of the sources in a folder."""
    files = [path] if path.is_file() else sorted(_in(path))
    found = hashlib.sha256()
    for file in files:
        found.update(f"{file.relative_to(path.parent)}\0{file.stat().st_size}\0".encode(errors="surrogateescape"))
        found.update(file.read_bytes())
    return found.hexdigest()


def _in(folder: Path) -> Iterator[Path]:
    """Yield the sources in a folder, except hidden ones, what was built, and environments."""
    for parent, folders, names in os.walk(folder):
        if any(name in OF_AN_ENVIRONMENT for name in (*folders, *names)):
            folders.clear()
            continue
        left_out = (*INSTALLED, "build", "dist") if Path(parent) == folder else INSTALLED
        folders[:] = [name for name in folders if not name.startswith(".") and name not in left_out]
        files = (Path(parent, name) for name in names if Path(name).suffix in SUFFIXES)
        yield from (file for file in files if file.is_file() and os.access(file, os.R_OK))
