"""Runs uv, which resolves and installs packages. It comes with the extra `env`. Any `uv` on the PATH also works.

uv gets the package index that pip is configured for, unless it has one of its own.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from bench.errors import SettingsError
from bench.machine.credentials import without_credentials

SECONDS = 1800.0
"""Time limit of a command, in seconds. A TensorFlow with CUDA has several GB to download."""


URL_VARIABLES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
}
"""The settings of pip whose URLs may hold a password, each with the variable of uv that has the same meaning, and what
separates its values. Every user of a machine can see the options of a process, but not its variables."""

INDEX_SETTINGS = (*URL_VARIABLES, "trusted-host", "no-index")
"""The settings of pip that configure the index."""

OWN_INDEX = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_NO_INDEX")
"""Variables that configure uv's index."""


def find() -> str | None:
    """Return the path of uv. None if it is not installed."""
    folders = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    return shutil.which("uv", path=os.pathsep.join(folders))


def run(problem: str, *arguments: str, text: str | None = None) -> str:
    """Run uv and return what it prints. `uv pip` uses pip's package index.

    Args:
        problem: what an error message says before the reason.
        arguments: the arguments of uv.
        text: text for the standard input of uv.

    Raises:
        SettingsError: uv is not installed, or it failed.
    """
    program = find()
    if program is None:
        raise SettingsError(f"{problem}: uv is not installed", "Install it: pip install uv")
    settings = pip_index() if arguments[0] == "pip" else {}
    try:
        done = subprocess.run(
            [program, *arguments, *index_options(settings)],
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
            env=os.environ | index_variables(settings),
        )
    except subprocess.TimeoutExpired:
        raise _failed(f"{problem}: uv did not end within {SECONDS:g} s", "Run the command again.") from None
    except OSError as error:
        raise _failed(f"{problem}: {error}", "Run the command again.") from None
    if done.returncode:
        said = " ".join(done.stderr.split()).removeprefix("error: ")[-400:]
        raise _failed(f"{problem}: {said}", f"The command was: uv {' '.join(arguments)}")
    return done.stdout


def _failed(message: str, hint: str) -> SettingsError:
    return SettingsError(without_credentials(message), without_credentials(hint))


@cache
def pip_index() -> Mapping[str, str]:
    """Return the settings of the package index that pip is configured for. Empty if uv has an index of its own."""
    if any(name in os.environ for name in OWN_INDEX):
        return {}
    for pip in ([sys.executable, "-m", "pip"], ["pip"], ["pip3"]):  # an environment that uv made may have no pip
        if shutil.which(pip[0]) is None:
            continue
        command = [*pip, "--disable-pip-version-check", "config", "list"]
        with suppress(OSError):  # a program that cannot be started
            listed = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
            if listed.returncode == 0:
                return read_settings(listed.stdout)
    return {}


def index_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of uv for pip's settings of the index."""
    return {
        variable: separator.join(settings[name].split())
        for name, (variable, separator) in URL_VARIABLES.items()
        if name in settings
    }


def index_options(settings: Mapping[str, str]) -> Iterator[str]:
    """Yield the options of uv for pip's settings of the index."""
    for host in settings.get("trusted-host", "").split():
        yield from ("--allow-insecure-host", host)
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        yield "--no-index"
    if "extra-index-url" in settings:
        yield from ("--index-strategy", "unsafe-best-match")  # as pip does


def read_settings(listed: str) -> Mapping[str, str]:
    """Return pip's settings of the index from what `pip config list` prints.

    Variables override section `install`, which overrides section `global`.
    """
    settings: dict[str, str] = {}
    for section in ("global", "install", ":env:"):
        for match in re.finditer(rf"^{re.escape(section)}\.([a-z-]+)=(.*)$", listed, re.MULTILINE):
            if match[1] in INDEX_SETTINGS:
                settings[match[1]] = str(ast.literal_eval(match[2]))
    return settings
