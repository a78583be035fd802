"""The folder that a script runs in: a new copy for each process, so that no process sees what another one wrote.

The parents of the original are copied too, as folders with links to their other entries, so that `../data` is found.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.config.settings import RunSettings
from bench.errors import SettingsError
from bench.machine import git_worktree
from bench.model.plan import Group
from bench.model.spec import Spec
from bench.registry import notebook
from bench.session import folder_copy
from bench.session.folder_copy import FolderCopy, Weight, copy_of, home, written_in

MOST_LINKED = 1_000
"""A folder with more entries that would have to be linked is too large."""

MOST_NAMED = 5
"""How many large entries the announcement names."""

ANNOUNCED_BYTES = 100 * 2**20
"""From this size on, the announcement says how large the copy is."""


@dataclass(frozen=True)
class ScriptFolder:
    """Where a script runs.

    Attributes:
        file: The script.
        root: The folder that is copied, or used as it is.
        copied: Whether each process runs in a new copy.
        output: The folder of results, which is not copied.
        working: The script's working folder. None if it is the root. If it is not in the root, it is copied too.
        lender: Another checkout whose untracked files the folder links to. They are copied too. None if there is none.
        large: Files and folders that are too large to copy. The copy has links to them.
        files: Number of files that are copied.
        size: Their size in bytes.
    """

    file: Path
    root: Path
    copied: bool
    output: Path
    working: Path | None = None
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
        is_module = spec.script is not None and bool(spec.script.module)
        return cls._placed(file, Path.cwd(), is_module, output.resolve())._weighed()

    @classmethod
    def _placed(cls, file: Path, current: Path, is_module: bool, output: Path) -> ScriptFolder:
        """Return where a script runs, as `python` and Jupyter would run it.

        A script runs in the current folder, and a notebook in its own. A script outside the current folder runs in its
        own folder if the current one is not that of a project, such as the home folder. A module that is installed
        elsewhere is not copied.
        """
        lender = None
        if current in file.parents:
            root = working = current
        elif (counterpart := git_worktree.counterpart(current, file)) is not None:
            root = working = counterpart
            lender = git_worktree.top(current)
        else:
            root, working = (current if is_module else file.parent), current
        if notebook.is_notebook(file):
            working = file.parent
        if root == Path(root.anchor):
            root = working = file.parent
        shared = (home(), Path(tempfile.gettempdir()).resolve())
        if root.anchor != working.anchor or (working in shared and root != working):
            working = root
        return cls(file, root, True, output, None if working == root else working, lender)

    def _weighed(self) -> ScriptFolder:
        """Return this folder with what is too large to copy.

        Raises:
            SettingsError: The script itself is too large to copy.
        """
        large: list[Path] = []
        weights: dict[Path, Weight] = {}
        copied = self._copies.weigh(large, weights)
        for path in sorted(weights, key=lambda path: weights[path].share, reverse=True):
            if copied.share <= 1:
                break
            if written_in(path) is not None:
                continue
            large.append(path)
            copied += Weight(-weights[path].files, -weights[path].size)
        if copied.share > 1 or len(large) > MOST_LINKED:
            raise self._too_large()
        for path in large:
            if (written := written_in(path)) is not None:
                raise self._not_linked(path, written)
        every = frozenset(large)
        named = tuple(path for path in large if every.isdisjoint(path.parents))
        return replace(self, large=named, files=copied.files, size=copied.size)

    @property
    def _copies(self) -> FolderCopy:
        """The folders that are copied."""
        is_apart = self.working is not None and not self.working.is_relative_to(self.root)
        roots = (self.root, self.working) if is_apart and self.working is not None else (self.root,)
        return FolderCopy(roots, self.file, self.output, self.lender, frozenset(self.large))

    @property
    def announcement(self) -> str:
        """What to tell the user before the first start."""
        if not self.copied:
            return f"{self.file.name} runs several times. It runs in {self.root} itself, not in a copy."
        size = f" ({self.size / 2**20:.0f} MiB)" if self.size >= ANNOUNCED_BYTES else ""
        roots = " and ".join(map(str, self._copies.roots))
        announced = (
            f"{self.file.name} runs several times, each time in a new copy of {roots}{size}. Files that it writes "
            "there are deleted. To run it elsewhere, use --workdir."
        )
        if not self.large:
            return announced
        names = [
            path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)
            for path in self.large[:MOST_NAMED]
        ]
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

        Raises:
            SettingsError: Something is too large to copy and cannot be linked.
        """
        if not self.copied:
            return self.file, self.root
        try:
            self._copies.write(scratch)
        except folder_copy.NoLinks as error:
            raise self._too_large() from error
        file = copy_of(self.file, scratch) if self.root in self.file.parents else self.file
        return file, copy_of(self.working or self.root, scratch)

    def _not_linked(self, large: Path, written: Path) -> SettingsError:
        root = next((root for root in self._copies.roots if large.is_relative_to(root)), self.root)
        return SettingsError(
            f"{large} is too large to copy for each process, and the script may overwrite {written.name} in it",
            f"Move what a training has written out of {root}. To run the script without a copy:\n"
            f"--workdir {self.working or self.root}",
        )

    def _too_large(self) -> SettingsError:
        roots = self._copies.roots
        files, size = folder_copy.LIMIT_FILES, folder_copy.LIMIT_BYTES / 2**30
        return SettingsError(
            f"{' and '.join(map(str, roots))} {'is' if len(roots) == 1 else 'are'} too large to copy for each process: "
            f"more than {files:,} files or {size:g} GiB",
            "Start devbench in the script's folder, or move data out of it. To run the script without a copy:\n"
            f"--workdir {self.working or self.root}",
        )

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


def script_folders(group: Group, settings: RunSettings) -> dict[str, ScriptFolder]:
    """Return the folders of the scripts of a group, by the keys of their specs.

    Raises:
        SettingsError: A folder does not exist, or is too large to copy.
    """
    return {
        planned.spec.key: ScriptFolder.of(planned.spec, settings.workdir, settings.output)
        for planned in group.planned
        if planned.spec.script is not None
    }
