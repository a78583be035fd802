"""Runs git, without hooks of the user, and in no repository but that of a folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from bench.errors import UsageError
from bench.machine.urls import without_user

OF_A_HOOK = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
"""Variables that git sets for a hook. They would let git write to the user's index while it checks out a commit."""

CONFIGURATION = ("-c", "core.quotePath=false", "-c", f"core.hooksPath={os.devnull}")
"""Options of git: names in messages as they are, and no hooks of the user."""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git in a folder.

    Raises:
        UsageError: git is not installed.
    """
    try:
        return subprocess.run(
            ["git", "-C", str(folder), *CONFIGURATION, *arguments],
            env={name: value for name, value in os.environ.items() if name not in OF_A_HOOK},
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
        )
    except OSError:
        raise UsageError(
            "git is not installed", "Install it, or compare two folders with `devbench run --compare`."
        ) from None


def output(folder: Path, *arguments: str) -> str | None:
    """Return what git prints. None if it failed."""
    done = run(folder, *arguments)
    return done.stdout.removesuffix("\n") if done.returncode == 0 else None


def last_line(text: str) -> str:
    """Return the last line of a message of git, without the passwords of its URLs."""
    return without_user((text.strip().splitlines() or ["git failed without a message"])[-1])
