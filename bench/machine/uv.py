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
from functools import cache
from pathlib import Path

from bench.errors import SettingsError

SECONDS = 1800.0
"""Time limit of a command, in seconds. A TensorFlow with CUDA has several GB to download."""


INDEX_OPTIONS = {
    "index-url": "--default-index",
    "extra-index-url": "--index",
    "find-links": "--find-links",
    "trusted-host": "--allow-insecure-host",
    "no-index": "--no-index",
}
"""The settings of pip that configure the index, each with the option of uv that has the same meaning."""

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
    index = index_options() if arguments[0] == "pip" else ()
    try:
        done = subprocess.run(
            [program, *arguments, *index], input=text, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SettingsError(f"{problem}: {error}", "Run the command again.") from None
    if done.returncode:
        said = " ".join(done.stderr.split()).removeprefix("error: ")[-400:]
        raise SettingsError(f"{problem}: {said}", f"The command was: uv {' '.join(arguments)}")
    return done.stdout


@cache
def index_options() -> tuple[str, ...]:
    """Return the options of uv for the package index that pip is configured for."""
    if any(name in os.environ for name in OWN_INDEX):
        return ()
    for pip in ([sys.executable, "-m", "pip"], ["pip"], ["pip3"]):  # an environment that uv made may have no pip
        if shutil.which(pip[0]) is None:
            continue
        command = [*pip, "--disable-pip-version-check", "config", "list"]
        listed = subprocess.run(command, capture_output=True, text=True, check=False)
        if listed.returncode == 0:
            return tuple(_index_options(listed.stdout))
    return ()


def _index_options(listed: str) -> Iterator[str]:
    """Yield the options of uv for what `pip config list` prints."""
    for name, value in _settings(listed).items():
        option = INDEX_OPTIONS[name]
        if name != "no-index":
            yield from (word for entry in value.split() for word in (option, entry))
        elif value.lower() in ("1", "true", "yes", "on"):
            yield option
    if "extra-index-url" in _settings(listed):
        yield from ("--index-strategy", "unsafe-best-match")  # as pip does


def _settings(listed: str) -> Mapping[str, str]:
    """Return pip's settings of the index. Variables override section `install`, which overrides section `global`."""
    settings: dict[str, str] = {}
    for section in ("global", "install", ":env:"):
        for match in re.finditer(rf"^{re.escape(section)}\.([a-z-]+)=(.*)$", listed, re.MULTILINE):
            if match[1] in INDEX_OPTIONS:
                settings[match[1]] = str(ast.literal_eval(match[2]))
    return settings
