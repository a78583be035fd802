"""The folder that a script runs in: a new copy for each process, so that no process sees what another one wrote.

The parents of the original are copied too, as folders with links to their other entries, so that `../data` is found.
Folders of programs are linked, because a training does not write into them. If data are too large to copy, their files
are linked.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from bench.errors import SettingsError
from bench.machine import git_worktree
from bench.model.spec import Spec
from bench.registry import notebook

LIMIT_BYTES = 2**30
LIMIT_FILES = 20_000
"""Not more than this is copied. The rest is linked, the largest entries first."""

MOST_LINKED = 1_000
"""A folder with more entries that would have to be linked is too large."""

MOST_NAMED = 5
"""How many large entries the announcement names."""

ANNOUNCED_BYTES = 100 * 2**20
"""From this size on, the announcement says how large the copy is."""

WRITTEN = re.compile(
    r"^checkpoint$|\.ckpt|\.data-\d+-of-\d+$|^events\.out\.tfevents|\.keras$|\.weights\.h5$", re.IGNORECASE
)
"""Names of files that a training writes. They are not linked, because the script would change the originals."""

LINKED = (".git", "node_modules", ".venv", "venv", "site-packages")
LEFT_OUT = ("__pycache__", ".ipynb_checkpoints")


@dataclass(frozen=True)
class _Weight:
    """What is copied of an entry of a folder.

    Attributes:
        files: Number of files.
        size: Their size in bytes.
    """

    files: int = 0
    size: int = 0

    def __add__(self, other: _Weight) -> _Weight:
        return _Weight(self.files + other.files, self.size + other.size)

    @property
    def share(self) -> float:
        """Its share of what is copied at most."""
        return max(self.files / LIMIT_FILES, self.size / LIMIT_BYTES)


@dataclass(frozen=True)
class ScriptFolder:
    """Where a script runs.

    Attributes:
        file: The script.
        root: The folder that is copied, or used as it is. It is the script's working folder.
        copied: Whether each process runs in a new copy.
        output: The folder of results, which is not copied.
        lender: Another checkout whose untracked files the folder links to. They are copied too. None if there is none.
        large: Files and folders that are too large to copy. The copy has links to them.
        files: Number of files that are copied.
        size: Their size in bytes.
    """

    file: Path
    root: Path
    copied: bool
    output: Path
    lender: Path | None = None
    large: tuple[Path, ...] = ()
    files: int = 0
    size: int = 0

    @classmethod
    def of(cls, spec: Spec, workdir: Path | None, output: Path) -> ScriptFolder:
        """Return the folder for a script.

        Args:
            spec: The spec of the script.
            workdir: Folder that the user chose. It is used as it is.
            output: The folder of results.

        Raises:
            SettingsError: The chosen folder does not exist, or the script itself is too large to copy.
        """
        file = Path(spec.file or "")
        if workdir is not None:
            if not workdir.is_dir():
                raise SettingsError(f"no folder at {workdir}", "Check --workdir.")
            return cls(file, workdir.resolve(), copied=False, output=output)
        current = Path.cwd()
        counterpart = None if current in file.parents else git_worktree.counterpart(current, file)
        root = current if current in file.parents else counterpart or file.parent
        if root == Path(root.anchor):
            root = file.parent
        lender = git_worktree.top(current) if counterpart else None
        folder = cls(file, root, copied=True, output=output.resolve(), lender=lender)
        large: list[Path] = []
        weights: dict[Path, _Weight] = {}
        copied = folder._weigh(root, large, weights)
        for path in sorted(weights, key=lambda path: weights[path].share, reverse=True):
            if copied.share <= 1:
                break
            if _written_in(path) is not None:
                continue
            large.append(path)
            copied += _Weight(-weights[path].files, -weights[path].size)
        if copied.share > 1 or len(large) > MOST_LINKED:
            raise _too_large(root)
        for path in large:
            if (written := _written_in(path)) is not None:
                raise _not_linked(path, written, root)
        every = frozenset(large)
        named = tuple(path for path in large if every.isdisjoint(path.parents))
        return replace(folder, large=named, files=copied.files, size=copied.size)

    @property
    def announcement(self) -> str:
        """What to tell the user before the first start."""
        if not self.copied:
            return f"{self.file.name} runs several times. It runs in {self.root} itself, not in a copy."
        size = f" ({self.size / 2**20:.0f} MiB)" if self.size >= ANNOUNCED_BYTES else ""
        announced = (
            f"{self.file.name} runs several times, each time in a new copy of {self.root}{size}. Files that it writes "
            "there are deleted. To run it elsewhere, use --workdir."
        )
        if not self.large:
            return announced
        names = [path.relative_to(self.root).as_posix() for path in self.large[:MOST_NAMED]]
        more = len(self.large) - len(names)
        names += [f"and {more} more"] if more else []
        return (
            f"{announced} Too large to copy: {', '.join(names)}. The copy has links to these files, so a script that "
            "overwrites them changes the originals."
        )

    def prepare(self, scratch: Path) -> tuple[Path, Path]:
        """Make a copy if one is wanted. Return the script's file and its working folder.

        Args:
            scratch: An empty folder for the copy.
        """
        if not self.copied:
            return self.file, self.root
        copy = scratch / self.root.relative_to(self.root.anchor)
        copy.mkdir(parents=True)
        for original in self.root.parents:
            if original != Path(original.anchor):
                _mirror(original, scratch / original.relative_to(original.anchor))
        self._copy(self.root, copy)
        return copy / self.file.relative_to(self.root), copy

    def place(self, scratch: Path) -> dict[str, Any]:
        """Make a copy if one is wanted. Return where a worker runs the script, as fields of `ScriptRun`.

        Args:
            scratch: An empty folder, in which the copy is made.
        """
        copy = scratch / "script"
        file, folder = self.prepare(copy)
        return {
            "file": str(file),
            "folder": str(folder),
            "copy_root": str(copy) if self.copied else "",
            "original_root": self.root.anchor.rstrip("/\\"),
            "cells": notebook.read(self.file).cells if notebook.is_notebook(self.file) else {},
        }

    def _entries(self, folder: Path) -> Iterator[os.DirEntry[str]]:
        with suppress(PermissionError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name not in LEFT_OUT and Path(entry.path) != self.output:
                    yield entry

    def _is_lent(self, entry: os.DirEntry[str]) -> bool:
        """Whether a link leads to a file of the lender."""
        return self.lender is not None and Path(os.path.realpath(entry.path)).is_relative_to(self.lender)

    def _weigh(self, folder: Path, large: list[Path], weights: dict[Path, _Weight]) -> _Weight:
        """Return what is copied of a folder. A folder that is too large is not read to its end.

        Args:
            folder: The folder.
            large: Gets the entries that are too large on their own.
            weights: Gets the other entries of the folders that hold the script.
        """
        total = _Weight()
        holds_script = self._holds_script(folder)
        for entry in self._entries(folder):
            if (entry.is_symlink() and not self._is_lent(entry)) or (entry.is_dir() and _is_linked(entry)):
                continue
            path = Path(entry.path)
            if entry.is_dir():
                weight = self._weigh(path, large, weights)
            elif entry.is_file():
                weight = _Weight(1, path.resolve().lstat().st_size)
            else:
                continue
            if weight.share > 1 and not self._holds_script(path):
                large.append(path)
                continue
            total += weight
            if holds_script and not self._holds_script(path):
                weights[path] = weight
            elif total.share > 1 and not holds_script:
                break
        return total

    @cached_property
    def _linked(self) -> frozenset[Path]:
        return frozenset(self.large)

    def _holds_script(self, path: Path) -> bool:
        return path == self.file or path in self.file.parents

    def _copy(self, folder: Path, copy: Path) -> None:
        for entry in self._entries(folder):
            target = copy / entry.name
            if entry.is_symlink() and not self._is_lent(entry):
                _link(Path(os.path.realpath(entry.path)), target)
            elif Path(entry.path) in self._linked:
                _link_files(Path(entry.path), target)
                if not target.exists():  # Windows allows links only to some users
                    raise _too_large(self.root)
            elif entry.is_dir():
                if _is_linked(entry):
                    _link(Path(entry.path), target)
                else:
                    target.mkdir(exist_ok=True)
                    self._copy(Path(entry.path), target)
            elif entry.is_file():
                with suppress(PermissionError, FileNotFoundError):  # the script cannot read it either
                    shutil.copy2(entry.path, target)


def _is_linked(entry: os.DirEntry[str]) -> bool:
    """Whether a folder holds programs, which a training only reads."""
    return entry.name in LINKED or os.access(Path(entry.path, "pyvenv.cfg"), os.F_OK)


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and its subfolders; the folder itself if it is a file."""
    if not folder.is_dir():
        yield folder
    for parent, _, names in os.walk(folder):
        yield from (Path(parent, name) for name in names)


def _written_in(original: Path) -> Path | None:
    """Return a file that a training has written, by its name, among the first files of a folder, or None."""
    return next((file for file in islice(_files(original), LIMIT_FILES) if WRITTEN.search(file.name)), None)


def _link_files(original: Path, copy: Path) -> None:
    """Make a folder with links to the files of another one, so that new files stay in the copy.

    A single file is linked. So is a folder of more than `LIMIT_FILES` files, as a whole.
    """
    files = list(islice(_files(original), LIMIT_FILES + 1))
    if len(files) > LIMIT_FILES or not original.is_dir():
        _link(original, copy)
        return
    copy.mkdir()
    for file in files:
        link = copy / file.relative_to(original)
        link.parent.mkdir(parents=True, exist_ok=True)
        _link(Path(os.path.realpath(file)), link)


def _not_linked(large: Path, written: Path, root: Path) -> SettingsError:
    return SettingsError(
        f"{large} is too large to copy for each process, and the script may overwrite {written.name} in it",
        f"Move what a training has written out of {root}. To run the script without a copy:\n--workdir {root}",
    )


def _too_large(root: Path) -> SettingsError:
    return SettingsError(
        f"{root} is too large to copy for each process: more than {LIMIT_FILES:,} files or {LIMIT_BYTES / 2**30:g} GiB",
        "Start devbench in the script's folder, or move data out of it. To run the script without a copy:\n"
        f"--workdir {root}",
    )


def _mirror(original: Path, copy: Path) -> None:
    """Make a folder with links to all entries of another one that it does not have yet."""
    copy.mkdir(parents=True, exist_ok=True)
    try:
        entries = list(original.iterdir())
    except OSError:
        return
    for entry in entries:
        _link(entry, copy / entry.name)


def _link(original: Path, link: Path) -> None:
    """Make a link, unless the path exists. If Windows does not allow it, the entry is missing."""
    if os.path.lexists(link):
        return
    try:
        link.symlink_to(original, target_is_directory=original.is_dir())
    except OSError:
        return
