"""Files at the root of the repository that other tools read: the citation and the hooks of pre-commit."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.version import __version__

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]


def load(name: str) -> dict[str, Any]:
    """Return the content of a YAML file. Only the environment of TensorFlow 2.21 has a parser of YAML."""
    import yaml

    content: dict[str, Any] = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    return content


def hooks() -> list[dict[str, Any]]:
    """Return the hooks of pre-commit."""
    return [hook for repository in load(".pre-commit-config.yaml")["repos"] for hook in repository["hooks"]]


def commands(entry: str) -> list[list[str]]:
    """Return the commands of a hook, as words. A shell's script may contain several."""
    words = shlex.split(entry)
    return [shlex.split(part) for part in words[2].split("|")] if words[:2] == ["sh", "-c"] else [words]


def test_the_citation_names_the_version_and_the_licence_of_the_package() -> None:
    citation = load("CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["version"] == __version__
    assert f'license = "{citation["license"]}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.needs("posix")
def test_every_command_of_a_hook_exists() -> None:
    for program, *arguments in (words for hook in hooks() for words in commands(hook["entry"])):
        folder = Path(sys.executable).parent if program.startswith(".venv/bin/") else None
        assert shutil.which(Path(program).name, path=str(folder) if folder else None), program
        if arguments[:1] == ["-m"]:
            assert importlib.util.find_spec(arguments[1]), arguments[1]


def test_the_hooks_are_the_checks_of_make_check() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = text.partition("\ncheck: ")[2].partition("\n\n")[0]
    checks = set(re.findall(r"^\ttry (.+?);", recipe, re.MULTILINE))
    entries = {hook["entry"].removeprefix(".venv/bin/") for hook in hooks() if not hook["entry"].startswith("sh ")}
    assert entries == {*checks, "mypy"}
    assert len(hooks()) == len(checks) + 2  # types, which make checks for three platforms, and the schema


def test_no_hook_comes_from_another_repository() -> None:
    assert {repository["repo"] for repository in load(".pre-commit-config.yaml")["repos"]} == {"local"}
