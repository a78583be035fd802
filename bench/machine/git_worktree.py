"""Which folder of a git worktree corresponds to a folder of another worktree of the same repository."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def counterpart(folder: Path, file: Path) -> Path | None:
    """Return the folder in a file's worktree that corresponds to a folder in another worktree.

    Args:
        folder: An absolute path, such as the working folder.
        file: An absolute path.

    Returns:
        The folder. None if the two are not in different worktrees of one repository, or if there is no such folder.
    """
    ours, theirs = top(folder), top(file.parent)
    if ours is None or theirs is None or ours == theirs or _repository(ours) != _repository(theirs):
        return None
    found = theirs / folder.relative_to(ours)
    return found if found.is_dir() and found in file.parents else None


def top(folder: Path) -> Path | None:
    """Return the top folder of the worktree that a folder is in. None if it is in none."""
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)


def _repository(top: Path) -> Path:
    """Return the folder of the repository that a worktree belongs to. In a linked worktree, `.git` is a file."""
    git = top / ".git"
    with suppress(OSError, UnicodeDecodeError):
        if git.is_file():
            own = (top / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()).resolve()
            common = own / "commondir"
            return (own / common.read_text(encoding="utf-8").strip()).resolve() if common.exists() else own
    return git.resolve()
