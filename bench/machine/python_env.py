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

from bench.errors import SettingsError
from bench.machine.installed import TENSORFLOWS

OLDEST = (3, 10)
"""Oldest version of Python that devbench's workers run with."""

SECONDS = 60.0
"""Time limit for reading an environment, in seconds."""

_READ = (
    "import json, os, platform, re, sys; from importlib import metadata, util;"
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
    if path.is_file() and os.access(path, os.X_OK):
        return path.absolute()  # not resolved: the link decides which environment it belongs to
    for name in ("bin/python", "Scripts/python.exe", "python.exe"):
        if (path / name).is_file():
            return (path / name).absolute()
    problem = "is not a Python environment" if path.exists() else "does not exist"
    raise SettingsError(
        f"--env: {path} {problem}", "Pass the folder of an environment, such as old=.venv, or its interpreter."
    )


def read(name: str, path: Path) -> PythonEnv:
    """Read an environment.

    Args:
        name: name that the user gave it.
        path: its folder or interpreter.

    Raises:
        SettingsError: it cannot be used.
    """
    python = interpreter(path)
    try:
        command = [str(python), "-c", _READ]
        output = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True).stdout
        (last,) = output.strip().splitlines()[-1:]  # a `.pth` file or `sitecustomize` may print more before it
        env = PythonEnv(name=name, python=str(python), **json.loads(last))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        said = str(getattr(error, "stderr", "") or error).strip().splitlines()[-1:]
        raise SettingsError(
            f"--env {name}: {python} does not run: {' '.join(said)}", "Recreate the environment."
        ) from None
    if tuple(map(int, env.version.split(".")[:2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise SettingsError(f"--env {name} has Python {env.version}", f"devbench needs Python {oldest} or newer.")
    if not env.has_tensorflow:
        raise SettingsError(f"--env {name} has no TensorFlow", f"Install it: {python} -m pip install tensorflow")
    return env
