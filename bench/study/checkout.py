"""A program at another commit of its repository, in a worktree of git."""

from __future__ import annotations

import ast
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.errors import UsageError
from bench.machine import git
from bench.signals import uninterrupted

UNSHALLOW = "Fetch the history: git fetch --unshallow. In actions/checkout, set fetch-depth: 0."

SUBMODULES = "If the submodule lacks the commit, fetch it: git fetch --recurse-submodules"

LFS = "Fetch the files of Git LFS: git lfs fetch --all"

PREFIX = "devbench-checkout-"
"""Start of the names of the folders that hold worktrees. The id of the process follows."""


def root_of(program: Path) -> Path:
    """Return the folder of the checkout that a program and the working folder are in.

    Raises:
        UsageError: there is no such program, or one of the two is in no checkout.
    """
    if not program.is_file():
        raise UsageError(f"no file at {program}", "Check the path of the program.")
    done = git.run(program.parent, "rev-parse", "--show-toplevel")
    if done.returncode:
        said = git.last_line(done.stderr)
        raise UsageError(
            f"{program} is not in a git repository: {said}", "Run the command in a clone of the repository."
        )
    root = Path(done.stdout.removesuffix("\n")).resolve()
    if not Path.cwd().resolve().is_relative_to(root):
        raise UsageError(f"the working folder is not in the repository of {program}", f"Change to it: cd {root}")
    return root


def commit_of(root: Path, reference: str) -> str:
    """Return the commit that a reference names.

    Raises:
        UsageError: there is none in this clone.
    """
    commit = git.output(root, "rev-parse", "--verify", "--quiet", f"{reference}^{{commit}}")
    if commit is None and is_shallow(root):
        raise UsageError(f"this shallow clone has no commit {reference}", UNSHALLOW)
    if commit is None:
        raise UsageError(f"the repository has no commit {reference}", "Fetch it: git fetch origin")
    return commit


def branch_point(root: Path, base: str, head: str) -> str:
    """Return the commit at which a head branched off a base.

    It is the base itself if the head contains all of it, if the base contains the head, or if this clone lacks the
    commit.
    """
    found = git.output(root, "merge-base", base, head)
    return base if found in (None, head) else found


@dataclass(frozen=True)
class Sides:
    """The two commits that a gate races.

    Attributes:
        root: The folder of the checkout.
        tip: The commit that the user named.
        base: The commit at which the head branched off.
        head: The current commit.
    """

    root: Path
    tip: str
    base: str
    head: str

    @property
    def history(self) -> list[str]:
        """The commits from the base to the head. Only the two if the head does not contain the base."""
        known = self.base != self.head and contains(self.root, self.head, self.base)
        return commits(self.root, self.base, self.head) if known else list(dict.fromkeys((self.base, self.head)))


def sides(program: Path, base: str) -> Sides:
    """Return the commits that a gate of a program races.

    Raises:
        UsageError: The program is in no repository, or there is no such commit.
    """
    root = root_of(program)
    tip, head = commit_of(root, base), commit_of(root, "HEAD")
    return Sides(root, tip, branch_point(root, tip, head), head)


def contains(root: Path, commit: str, other: str) -> bool:
    """Return whether a commit is another one or comes after it."""
    return git.output(root, "merge-base", "--is-ancestor", other, commit) is not None


def branch_points(root: Path, base: str, head: str) -> list[str]:
    """Return all commits at which a head may have branched off a base. Several if the two were merged crosswise."""
    return (git.output(root, "merge-base", "--all", base, head) or "").split()


def changed_files(root: Path, base: str, head: str) -> list[str]:
    """Return the paths of the files that differ between two commits, relative to the root."""
    return list(
        filter(None, (git.output(root, "diff", "--name-only", "--no-renames", "-z", base, head) or "").split("\0"))
    )


def is_shallow(root: Path) -> bool:
    """Return whether a clone lacks a part of the history."""
    return git.output(root, "rev-parse", "--is-shallow-repository") == "true"


def require_clean(root: Path) -> None:
    """Check that all changes are committed.

    Raises:
        UsageError: there are uncommitted changes.
    """
    done = git.run(root, "status", "--porcelain", "--untracked-files=no")
    if done.returncode:
        raise UsageError(f"git status failed: {git.last_line(done.stderr)}")
    changed = done.stdout.splitlines()
    if changed:
        count = f"{len(changed)} file{'s' * (len(changed) > 1)}"
        others = " and others" if changed[1:] else ""
        raise UsageError(f"uncommitted changes in {count}: {changed[0][3:]}{others}", "Commit or stash them.")


def require_syntax(file: Path, name: str) -> None:
    """Check the syntax of a Python file.

    Raises:
        UsageError: it has a syntax error.
    """
    if file.suffix != ".py":
        return
    try:
        ast.parse(file.read_bytes(), str(file))
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else f": {error}"
        raise UsageError(f"{name} has a syntax error in {file.name}{line}") from None


def commits(root: Path, good: str, bad: str) -> list[str]:
    """Return the commits from a good one to a bad one. Each contains the good one.

    Where branches were merged, it follows the first parent that contains the good commit.

    Raises:
        UsageError: there is no such commit, or the good one is not an ancestor of the bad one.
    """
    first, last = (commit_of(root, reference) for reference in (good, bad))
    if not contains(root, last, first) or first == last:
        hint = UNSHALLOW if is_shallow(root) else "Name the older commit with --good."
        raise UsageError(f"{good} is not an ancestor of {bad}", hint)
    listed = git.output(root, "rev-list", "--ancestry-path", "--parents", f"{first}..{last}") or ""
    parents = {commit: others for commit, *others in map(str.split, listed.splitlines())}
    path = [last]
    while path[-1] != first:
        path.append(next(parent for parent in parents[path[-1]] if parent == first or parent in parents))
    return path[::-1]


def name_of(file: Path) -> str | None:
    """Return the name of the worktree that `at` made for a program. None if it made none."""
    return next((folder.name for folder in file.parents if folder.parent.name.startswith(PREFIX)), None)


@contextmanager
def at(root: Path, program: Path, commit: str, name: str, output: Path) -> Iterator[Path]:
    """Yield a program as it is at another commit, in a worktree that is removed at the end.

    The worktree has links to what git does not track, such as data. A script runs in a copy of them (`ScriptFolder`).

    Args:
        root: The folder of the current checkout (`root_of`).
        program: The program in the current checkout.
        commit: The commit.
        name: Name of the worktree's folder.
        output: The folder of results, which gets no link.

    Raises:
        UsageError: The commit has no such file.
    """
    file = program.parent.resolve().relative_to(root) / program.name
    if git.output(root, "cat-file", "-e", f"{commit}:{file.as_posix()}") is None:
        raise UsageError(
            f"{file.as_posix()} does not exist in commit {commit[:12]}", "Choose a commit that has the program."
        )
    _remove_leftovers(root)
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-") as scratch:
        folder = Path(scratch).resolve() / name
        with _worktree(root, folder, commit, output.resolve()):
            yield folder / file


def _remove_leftovers(root: Path) -> None:
    """Remove the worktrees of processes that were killed. The name of their folder has the id of the process."""
    import psutil

    listed = (git.output(root, "worktree", "list", "--porcelain") or "").splitlines()
    for worktree in (Path(line.removeprefix("worktree ")) for line in listed if line.startswith("worktree ")):
        scratch = worktree.parent
        owner = scratch.name.removeprefix(PREFIX).partition("-")[0]
        if not scratch.name.startswith(PREFIX) or not owner.isdigit() or not scratch.is_dir():
            continue
        if not psutil.pid_exists(int(owner)):
            for path, _ in _submodules(root, "HEAD"):
                git.output(root / path, "worktree", "remove", "--force", str(worktree / path))
            git.output(root, "worktree", "remove", "--force", str(worktree))
            shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _worktree(root: Path, folder: Path, commit: str, output: Path, hint: str = "") -> Iterator[None]:
    """Check out a commit, with the submodules and untracked files of the current checkout, and remove it at the end.

    Args:
        root: A checkout of the repository.
        folder: The new folder.
        commit: The commit.
        output: The folder of results, which gets no link.
        hint: What to do if git cannot check it out.

    Raises:
        UsageError: git cannot check it out.
    """
    try:
        with uninterrupted():
            done = git.run(root, "worktree", "add", "--detach", "--quiet", str(folder), commit)
        if done.returncode:
            said = git.last_line(done.stderr)
            raise UsageError(f"git cannot check out {commit[:12]} in {root}: {said}", LFS if "lfs" in said else hint)
        with ExitStack() as stack:
            for path, own in _submodules(root, commit):
                stack.enter_context(_worktree(root / path, folder / path, own, output, SUBMODULES))
            _link_untracked(root, folder, output)
            yield
    finally:
        with uninterrupted():
            git.output(root, "worktree", "remove", "--force", str(folder))


def _submodules(root: Path, commit: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the commit of each submodule of a commit that the current checkout has."""
    for entry in filter(None, (git.output(root, "ls-tree", "-r", "-z", commit) or "").split("\0")):
        fields, _, path = entry.partition("\t")
        mode, _, own = fields.split(" ")
        if mode == "160000" and (root / path / ".git").exists():
            yield path, own


def _link_untracked(root: Path, worktree: Path, output: Path) -> None:
    """Link untracked files that the worktree lacks, except `__pycache__` and the folder of results."""
    listed = git.output(root, "ls-files", "--others", "--directory", "--no-empty-directory", "-z") or ""
    for name in filter(None, listed.split("\0")):
        path = Path(name)
        if "__pycache__" not in path.parts:
            with suppress(OSError):  # if Windows does not allow links, the file is missing
                (worktree / path).parent.mkdir(parents=True, exist_ok=True)
                _link(root / path, worktree / path, output)


def _link(original: Path, link: Path, output: Path) -> None:
    """Link a file or folder, unless the worktree has it. A folder that contains the folder of results is made anew."""
    if original == output:
        return
    if output.is_relative_to(original):
        link.mkdir(exist_ok=True)
        for entry in original.iterdir():
            _link(entry, link / entry.name, output)
    elif not os.path.lexists(link):
        link.symlink_to(original, target_is_directory=original.is_dir())
