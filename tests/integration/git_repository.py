"""A git repository that a test makes."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

AUTHOR = ("-c", "user.name=devbench", "-c", "user.email=devbench@localhost", "-c", "commit.gpgsign=false")

SCRIPT = "import helper\n"
"""The script of `project`."""


class GitRepository:
    """A repository with the branch `main`.

    Args:
        folder: is created.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch", "main")

    def git(self, *arguments: str) -> str:
        """Run git and return what it prints."""
        command = ["git", *AUTHOR, *arguments]
        return subprocess.run(command, cwd=self.folder, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, files: Mapping[str, str]) -> str:
        """Write files, commit everything, and return the commit."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "Change it")
        return self.git("rev-parse", "HEAD")


def project(folder: Path) -> GitRepository:
    """Make a repository with two commits of the script `sub/train.py` and the module that it imports."""
    made = GitRepository(folder)
    for number in (1, 2):
        files = {"sub/train.py": SCRIPT, "sub/helper.py": f"NUMBER = {number}\n", ".gitignore": "data/\n"}
        made.commit(files)
    return made
