"""Python environments other than devbench's own: which interpreter they have, and which packages.

Nothing is imported from them. Their own interpreter reads the metadata of its packages.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import SettingsError
from bench.machine.installed import TENSORFLOWS

OLDEST = (3, 10)
"""Oldest version of Python that devbench's workers run with."""

SECONDS = 60.0
"""Time limit for reading an environment, in seconds."""

PASS = "Pass the folder of an environment, such as old=.venv, or its interpreter."

_READ = (
    "import json, os, platform, re, sys;"
    "sys.version_info < (3, 8) and "  # without `importlib.metadata`. Python 2 must be able to compile this
    "(sys.stdout.write(json.dumps({'version': platform.python_version()})), sys.exit());"
    "from importlib import metadata, util;"
    "sys.path = [path for path in sys.path if path];"  # without the working folder
    "found = [d for d in metadata.distributions() if d.metadata['Name']];"
    "packages = {re.sub('[-_.]+', '-', d.metadata['Name']).lower(): d.version for d in reversed(found)};"
    "spec = util.find_spec('tensorflow');"
    "site = os.path.dirname(os.path.dirname(spec.origin)) if spec and spec.origin else None;"
    "print(json.dumps({'version': platform.python_version(), 'tag': sys.implementation.cache_tag, "
    "'packages': packages, 'has_tensorflow': spec is not None, 'site_packages': site}))"
)


@dataclass(frozen=True)
class PythonEnv:
    """An environment.

    Attributes:
        name: the name that the user gave it.
        python: the path of its interpreter.
        version: the version of Python, such as "3.11.9".
        tag: the cache tag of the interpreter, such as "cpython-311".
        packages: the versions of its packages, by name.
        has_tensorflow: whether TensorFlow can be imported. A build from source may have no package of that name.
        site_packages: the folder that holds its TensorFlow. None if there is none.
    """

    name: str
    python: str
    version: str
    tag: str
    packages: Mapping[str, str]
    has_tensorflow: bool = True
    site_packages: str | None = None

    @property
    def digest(self) -> str:
        """A hash of the version of Python and of all packages."""
        document = json.dumps([self.version, sorted(self.packages.items())])
        return hashlib.sha256(document.encode()).hexdigest()

    @property
    def tensorflow(self) -> str | None:
        """The version of the package that contains TensorFlow. None if there is no such package."""
        return next((self.packages[name] for name in TENSORFLOWS if name in self.packages), None)


def interpreter(path: Path) -> Path:
    """Return the interpreter of an environment.

    Args:
        path: a folder of a virtual or conda environment, or an interpreter.

    Raises:
        SettingsError: there is none.
    """
    try:
        path = path.expanduser()
        if path.is_file() and os.access(path, os.X_OK):
            return path.absolute()  # not resolved: the link decides which environment it belongs to
        for name in ("bin/python", "Scripts/python.exe", "python.exe"):
            if (path / name).is_file():
                return (path / name).absolute()
        problem = "is not a Python environment" if path.exists() else "does not exist"
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    except RuntimeError:
        problem = "is in a home folder that is not known"
    raise SettingsError(f"--env: {path} {problem}", PASS)


def read(name: str, path: Path) -> PythonEnv:
    """Read an environment.

    Args:
        name: name that the user gave it.
        path: its folder or interpreter.

    Raises:
        SettingsError: it cannot be used.
    """
    python = interpreter(path)
    found = _document(name, python)
    if tuple(map(int, found["version"].split(".")[:2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise SettingsError(f"--env {name} has Python {found['version']}", f"devbench needs Python {oldest} or newer.")
    env = PythonEnv(name=name, python=str(python), **found)
    if not env.has_tensorflow:
        raise SettingsError(f"--env {name} has no TensorFlow", f"Install it: {python} -m pip install tensorflow")
    return env


def _document(name: str, python: Path) -> dict[str, Any]:
    """Return what an interpreter says about itself and its packages. Of an old version, only the version.

    Raises:
        SettingsError: it does not run, or is no interpreter of Python.
    """
    start = f"--env {name}: {python}"
    try:
        done = subprocess.run(
            [str(python), "-c", _READ], capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        hint = f"Try it: {python} -c 'import importlib.metadata'. Is the environment on a slow file system?"
        raise SettingsError(f"{start} did not list its packages within {SECONDS:g} s", hint) from None
    except OSError as error:
        raise SettingsError(f"{start} does not run: {error.strerror}", PASS) from None
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"it ended with exit code {done.returncode}"])[-1]
        raise SettingsError(f"{start} does not run: {said}", f"Recreate the environment. {PASS}")
    try:
        document: Any = json.loads((done.stdout.splitlines() or [""])[-1])  # a start-up file may print before it
    except ValueError:
        document = None
    if not isinstance(document, dict) or "version" not in document:
        raise SettingsError(f"{start} is not an interpreter of Python", PASS)
    return document
