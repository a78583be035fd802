"""Python environments that devbench makes with uv, from requirements such as `tensorflow==2.20.0`.

An environment is made once for each set of resolved versions, and kept in the user's cache. A requirement may be a file
or a folder, such as `.`. Then its sources count too.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from bench.errors import SettingsError
from bench.machine import sources, user_cache, uv
from bench.machine.urls import without_user
from bench.session.worker_packages import NEEDED

INTERPRETERS = ("bin/python", "Scripts/python.exe")

PYTHON = re.compile(r"python==(?P<version>\d+\.\d+(\.\d+)?)")
"""A requirement that chooses the version of Python."""

SEPARATOR = re.compile(r",(?!\s*[<>=!~])(?![^\[]*\])")
"""A comma between two environments, not one within `pandas>=2,<3` or `package[one,two]`."""


def make(text: str) -> Mapping[str, Path]:
    """Return the environments that a text asks for, by name. Those that are not in the cache are made.

    A name, which is part of results, contains no password of a URL.

    Args:
        text: environments separated by commas, each with requirements separated by spaces. A comma within extras, or
            before a further condition for a version, is part of a requirement.

    Raises:
        SettingsError: one cannot be resolved or installed.
    """
    names = list(dict.fromkeys(" ".join(part.split()) for part in SEPARATOR.split(text)))
    if not all(names):
        raise SettingsError(
            f"--with {without_user(text)} contains an empty environment",
            "Write requirements: tensorflow==2.20.0,tensorflow==2.21.0",
        )
    return {without_user(name): environment(name) for name in names}


def environment(name: str) -> Path:
    """Return the folder of an environment with some requirements.

    Raises:
        SettingsError: it cannot be resolved or installed.
    """
    shown = without_user(name)
    chosen = chosen_python(name)
    python = chosen or f"{sys.version_info.major}.{sys.version_info.minor}"
    requirements = [_absolute(word) for word in name.split() if not PYTHON.fullmatch(word)]
    interpreter = chosen or sys.executable
    resolved = uv.run(
        f"--with {shown} cannot be resolved for Python {python}",
        *("pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python", interpreter, "-"),
        text="\n".join([*requirements, NEEDED]),
    )
    key = "\n".join((python, sys.platform, platform.machine(), resolved, *local_digests(name)))
    folder = user_cache.folder() / "environments" / hashlib.sha256(key.encode()).hexdigest()[:16]
    if folder.exists() and not any((folder / name).exists() for name in INTERPRETERS):
        shutil.rmtree(folder)  # the Python that it was made with was removed
    if not folder.exists():
        _install(shown, interpreter, resolved, folder)
    return folder


def local_digests(requirements: str) -> list[str]:
    """Return a hash of each file or folder among requirements that are separated by spaces."""
    return [sources.digest(path) for path in map(_local, requirements.split()) if path is not None]


def _local(requirement: str) -> Path | None:
    """Return the path of a requirement that is a file or a folder. None if it is neither."""
    text = requirement.partition("[")[0]
    if text not in (".", "..") and "/" not in text and os.sep not in text:
        return None
    path = Path(text).resolve()
    return path if path.exists() else None


def _absolute(requirement: str) -> str:
    """Return a requirement, as a URL if it is a file or a folder."""
    path = _local(requirement)
    _, bracket, extras = requirement.partition("[")
    return requirement if path is None else f"{path.as_uri()}{bracket}{extras}"


def chosen_python(requirements: str) -> str | None:
    """Return the version of Python that requirements, separated by spaces, choose. None if they choose none."""
    versions = [match["version"] for word in requirements.split() if (match := PYTHON.fullmatch(word))]
    return versions[-1] if versions else None


def _install(name: str, interpreter: str, resolved: str, folder: Path) -> None:
    problem = f"--with {name} cannot be installed"
    with user_cache.new_folder(folder) as made:
        uv.run(problem, "venv", "--quiet", "--relocatable", "--python", interpreter, str(made))
        (made / "requirements.txt").write_text(without_user(resolved), encoding="utf-8")
        local = re.findall(r"^(\S+) @ file:", resolved, re.MULTILINE)
        build = [f"--refresh-package={name}" for name in local]  # uv caches what it built of other sources
        uv.run(problem, "pip", "install", "--quiet", "--python", str(made), *build, "-r", "-", text=resolved)
