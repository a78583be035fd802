"""Copies folders for a script, so that what it writes does not reach the originals.

A link within the copied folders becomes a link within the copy. What another link leads to is copied like a file or a
folder, because the script may write into it. Folders of programs are linked, because a training does not write into
them. If data are too large to copy, their files are linked.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

LIMIT_BYTES = 2**30
LIMIT_FILES = 20_000
"""Not more than this is copied. The rest is linked, the largest entries first."""

WRITTEN = re.compile(
    r"^checkpoint$|\.ckpt|\.data-\d+-of-\d+$|^events\.out\.tfevents|\.keras$|\.weights\.h5$", re.IGNORECASE
)
"""Names of files that a training writes. They are not linked, because the script would change the originals."""

LINKED = (".git", "node_modules", ".venv", "venv", "site-packages")
LEFT_OUT = ("__pycache__", ".ipynb_checkpoints")

SCRATCH = "devbench-"
"""Beginning of the names of devbench's own folders in the folder for temporary files."""


class NoLinks(OSError):
    """A file that is too large to copy cannot be linked. Windows allows links only to some users."""


@dataclass(frozen=True)
class Weight:
    """What is copied of an entry of a folder.

    Attributes:
        files: Number of files.
        size: Their size in bytes.
    """

    files: int = 0
    size: int = 0

    def __add__(self, other: Weight) -> Weight:
        return Weight(self.files + other.files, self.size + other.size)

    @property
    def share(self) -> float:
        """Its share of what is copied at most."""
        return max(self.files / LIMIT_FILES, self.size / LIMIT_BYTES)


@dataclass(frozen=True)
class FolderCopy:
    """How folders are copied.

    Attributes:
        roots: The folders that are copied, as absolute paths without links. None contains another one.
        file: The script. The folders that hold it are not linked.
        output: The folder of results, which is not copied.
        lender: Another checkout whose untracked files the folders link to. None if there is none.
        large: Files and folders that are too large to copy. The copy has links to them.
    """

    roots: tuple[Path, ...]
    file: Path
    output: Path
    lender: Path | None = None
    large: frozenset[Path] = field(default_factory=frozenset)

    def weigh(self, large: list[Path], weights: dict[Path, Weight]) -> Weight:
        """Return what is copied. A folder that is too large is not read to its end.

        Args:
            large: Gets the entries that are too large on their own.
            weights: Gets the other entries of the folders that hold the script, and of the other roots.
        """
        total, seen = Weight(), set[Path]()
        for root in self.roots:
            total += self._weigh(root, large, weights, (), seen)
        return total

    def write(self, scratch: Path) -> None:
        """Copy the folders into an empty folder, where each has its absolute path. Their parents get links.

        Raises:
            NoLinks: A file or folder that is too large to copy cannot be linked.
        """
        for root in self.roots:
            copy_of(root, scratch).mkdir(parents=True)
        for root in self.roots:
            for original in root.parents:
                if original != Path(original.anchor):
                    _mirror(original, copy_of(original, scratch))
        copies: dict[Path, Path] = {}
        for root in self.roots:
            self._copy(root, copy_of(root, scratch), scratch, (), copies)

    def _entries(self, folder: Path) -> Iterator[os.DirEntry[str]]:
        is_temporary = folder.resolve() == Path(tempfile.gettempdir()).resolve()
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name in LEFT_OUT or (is_temporary and entry.name.startswith(SCRATCH)):
                    continue
                if Path(entry.path) != self.output and (not entry.is_symlink() or _target(entry) != self.output):
                    yield entry

    def _is_kept_link(self, entry: os.DirEntry[str], followed: tuple[Path, ...]) -> bool:
        """Whether a link stays one: it leads to what is copied anyway, to nothing, or to a folder that it is in."""
        if not entry.is_symlink():
            return False
        target = _target(entry)
        if any(target == folder or target in folder.parents for folder in followed):
            return True
        return not self._is_lent(entry) and (self._is_inside(target) or not os.access(target, os.F_OK))

    def _is_inside(self, target: Path) -> bool:
        """Whether a path is in a folder that is copied, or is a parent of one."""
        return any(target == root or root in target.parents or target in root.parents for root in self.roots)

    def _is_lent(self, entry: os.DirEntry[str]) -> bool:
        """Whether a link leads to a file of the lender."""
        return self.lender is not None and _target(entry).is_relative_to(self.lender)

    def _weigh(
        self,
        folder: Path,
        large: list[Path],
        weights: dict[Path, Weight],
        followed: tuple[Path, ...],
        seen: set[Path],
    ) -> Weight:
        total = Weight()
        is_divided = self._is_divided(folder)
        for entry in self._entries(folder):
            if self._is_kept_link(entry, followed) or (entry.is_dir() and _is_linked(entry)):
                continue
            path = Path(entry.path)
            if entry.is_symlink():
                if _target(entry) in seen:  # several links to one place have one copy
                    continue
                seen.add(_target(entry))
            if entry.is_dir():
                weight = self._weigh(path, large, weights, _follow(entry, followed), seen)
            elif entry.is_file():
                weight = Weight(1, path.resolve().lstat().st_size)
            else:
                continue
            if weight.share > 1 and not self._is_divided(path):
                large.append(path)
                continue
            total += weight
            if is_divided and not self._is_divided(path):
                weights[path] = weight
            elif total.share > 1 and not is_divided:
                break
        return total

    def _is_divided(self, path: Path) -> bool:
        """Whether a path is the script, holds it, or is a root, so that it is not linked as a whole."""
        return path == self.file or path in self.file.parents or path in self.roots

    def _copy(
        self, folder: Path, copy: Path, scratch: Path, followed: tuple[Path, ...], copies: dict[Path, Path]
    ) -> None:
        """Copy a folder. `copies` has the copies of what links led to, by its path without links."""
        for entry in self._entries(folder):
            target = copy / entry.name
            if self._is_kept_link(entry, followed):
                leads_to = _target(entry)
                if self._is_inside(leads_to):
                    _link(Path(os.path.relpath(copy_of(leads_to, scratch), copy)), target, _is_folder(leads_to))
                else:
                    _link(leads_to, target)
            elif entry.is_symlink() and _target(entry) in copies:
                there = copies[_target(entry)]
                _link(Path(os.path.relpath(there, copy)), target, there.is_dir())
            else:
                if entry.is_symlink():
                    copies[_target(entry)] = target
                self._copy_entry(entry, target, scratch, followed, copies)

    def _copy_entry(
        self,
        entry: os.DirEntry[str],
        target: Path,
        scratch: Path,
        followed: tuple[Path, ...],
        copies: dict[Path, Path],
    ) -> None:
        if Path(entry.path) in self.large:
            _link_files(Path(entry.path), target)
            if not target.exists():
                raise NoLinks(entry.path)
        elif entry.is_dir() and _is_linked(entry):
            _link(Path(entry.path), target)
        elif entry.is_dir():
            target.mkdir(exist_ok=True)
            self._copy(Path(entry.path), target, scratch, _follow(entry, followed), copies)
        elif entry.is_file():
            with suppress(PermissionError, FileNotFoundError):  # the script cannot read it either
                shutil.copy2(entry.path, target)
        elif entry.is_symlink():  # to a device or a socket
            _link(_target(entry), target)


def home() -> Path | None:
    """Return the user's home folder. None if there is none, as for some users of containers."""
    try:
        return Path.home().resolve()
    except RuntimeError:
        return None


def copy_of(original: Path, scratch: Path) -> Path:
    """Return where the copy of an absolute path is in a scratch folder."""
    return scratch / original.relative_to(original.anchor)


def written_in(original: Path) -> Path | None:
    """Return a file that a training has written, by its name, among the first files of a folder, or None."""
    return next((file for file in islice(_files(original), LIMIT_FILES) if WRITTEN.search(file.name)), None)


def _target(entry: os.DirEntry[str]) -> Path:
    """Return the path of an entry without links."""
    return Path(os.path.realpath(entry.path))


def _is_folder(path: Path) -> bool:
    """Whether a path is a folder. Not if this user may not know."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _follow(entry: os.DirEntry[str], followed: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the folders that links led to, down to an entry."""
    return (*followed, _target(entry)) if entry.is_symlink() else followed


def _is_linked(entry: os.DirEntry[str]) -> bool:
    """Whether a folder holds programs or their settings, which a training only reads.

    In a home folder, these are the hidden folders.
    """
    is_hidden = entry.name.startswith(".") and Path(entry.path).parent == home()
    return is_hidden or entry.name in LINKED or os.access(Path(entry.path, "pyvenv.cfg"), os.F_OK)


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and its subfolders; the folder itself if it is a file. Links are followed once."""
    if not folder.is_dir():
        yield folder
    read = {folder.resolve()}
    for parent, folders, names in os.walk(folder, followlinks=True):
        yield from (Path(parent, name) for name in names)
        for name in [*folders]:
            path = Path(parent, name)
            if path.is_symlink() and path.resolve() in read:
                folders.remove(name)
            read.add(path.resolve())


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


def _mirror(original: Path, copy: Path) -> None:
    """Make a folder with links to all entries of another one that it does not have yet."""
    copy.mkdir(parents=True, exist_ok=True)
    try:
        entries = list(original.iterdir())
    except OSError:
        return
    for entry in entries:
        _link(entry, copy / entry.name)


def _link(original: Path, link: Path, is_folder: bool | None = None) -> None:
    """Make a link, unless the path exists. If Windows does not allow it, the entry is missing."""
    if os.path.lexists(link):
        return
    with suppress(OSError):
        link.symlink_to(original, target_is_directory=_is_folder(original) if is_folder is None else is_folder)
