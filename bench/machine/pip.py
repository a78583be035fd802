"""Runs pip, which knows the package index that the user configured. devbench's environment may lack pip."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import util
from pathlib import Path

from bench.errors import SettingsError


def run(*arguments: str, variables: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run pip for this interpreter.

    Args:
        arguments: the arguments of pip.
        variables: environment variables besides those of this process.

    Raises:
        SettingsError: there is no pip.
    """
    found = command()
    if found is None:
        raise SettingsError("pip is not installed", f"Install it: {sys.executable} -m ensurepip")
    return subprocess.run(
        [*found, "--disable-pip-version-check", *arguments],
        env={**os.environ, **(variables or {})},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


@cache
def command() -> tuple[str, ...] | None:
    """Return the command that runs pip for this interpreter. None if there is no pip."""
    for candidate in _candidates():
        with suppress(OSError):  # a program that cannot be started
            if subprocess.run([*candidate, "--version"], capture_output=True, check=False).returncode == 0:
                return candidate
    return None


def _candidates() -> Iterator[tuple[str, ...]]:
    """Yield the commands that may run pip: that of this environment, those on the PATH, and that of `ensurepip`."""
    yield (sys.executable, "-m", "pip")
    for name in ("pip", "pip3"):
        if program := shutil.which(name):
            yield (program, "--python", sys.executable)
    ensurepip = util.find_spec("ensurepip")
    bundled = [Path(folder) / "_bundled" for folder in (ensurepip and ensurepip.submodule_search_locations) or ()]
    shared = sysconfig.get_config_var("WHEEL_PKG_DIR")  # where a Linux distribution keeps the wheels of ensurepip
    for folder in [*bundled, *([Path(shared)] if shared else [])]:
        for wheel in folder.glob("pip-*.whl"):
            yield (sys.executable, str(wheel / "pip"))
