"""The packages that a worker needs besides TensorFlow, for environments that lack them.

devbench puts them into a folder of the user's cache, once for each version of Python, and does not change the
environment. For the version of Python that runs devbench, it copies its own packages. For other versions, uv installs
them.
"""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from bench.machine import user_cache, uv
from bench.machine.python_env import PythonEnv

NEEDED = "pydantic>=2.9,<3"
"""What `bench.worker` imports from outside the standard library, apart from TensorFlow and what comes with it."""


def missing(env: PythonEnv) -> bool:
    """Return whether an environment lacks a package that a worker needs."""
    numbers = re.findall(r"\d+", env.packages.get("pydantic", "0.0"))[:2]
    return not (2, 9) <= tuple(map(int, numbers)) < (3,)


def folder_for(env: PythonEnv) -> Path | None:
    """Return the folder with the packages that an environment lacks. None if it lacks none.

    Raises:
        SettingsError: they cannot be installed.
    """
    if not missing(env):
        return None
    kind = hashlib.sha256(NEEDED.encode()).hexdigest()[:8]
    folder = user_cache.folder() / "worker-packages" / f"{env.tag}-{platform.machine()}-{kind}"
    if folder.is_dir():
        return folder
    with user_cache.new_folder(folder) as made:
        install(env, made)
    return folder


def install(env: PythonEnv, folder: Path) -> None:
    """Put what a worker needs into a folder, for the interpreter of an environment.

    Raises:
        SettingsError: it failed.
    """
    if env.tag == sys.implementation.cache_tag and _copy(folder):
        return
    problem = f"--env {env.name} lacks pydantic, and devbench cannot install it"
    uv.run(problem, "pip", "install", "--quiet", "--python", env.python, "--target", str(folder), NEEDED)


def _copy(folder: Path) -> bool:
    """Copy devbench's own pydantic and what it requires. Return whether all files exist."""
    files = [file for name in _required("pydantic") for file in metadata.distribution(name).files or ()]
    if not files:
        return False
    for file in files:
        source = Path(str(file.locate()))
        if ".." in file.parts or source.suffix == ".pyc":
            continue
        if not source.is_file():
            return False
        (folder / file.parent).mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, folder / file)
    return True


def _required(name: str) -> Iterator[str]:
    """Yield the name of an installed package and of all packages that it requires without an extra."""
    pending, seen = [name], {name}
    while pending:
        current = pending.pop()
        try:
            requirements = metadata.distribution(current).requires or ()
        except metadata.PackageNotFoundError:  # required by other versions of Python only
            continue
        yield current
        for requirement in requirements:
            required = re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower()
            if "extra ==" not in requirement and required not in seen:
                seen.add(required)
                pending.append(required)
