"""Runs uv, which resolves and installs packages. It comes with the extra `env`. Any `uv` on the PATH also works.

uv gets the package index that pip is configured for, unless it has one of its own. Its URL may hold a password, so uv
gets it in variables: everybody can see the arguments of a process.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from bench.errors import SettingsError
from bench.machine import pip
from bench.machine.urls import without_user

SECONDS = 1800.0
"""Time limit of a command, in seconds. A TensorFlow with CUDA has several GB to download."""


INDEX_VARIABLES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
}
"""The settings of pip that configure the index, each with the variable of uv that has the same meaning, and with what
separates several values in it."""

OWN_INDEX = {
    "UV_DEFAULT_INDEX": "PIP_INDEX_URL",
    "UV_INDEX_URL": "PIP_INDEX_URL",
    "UV_INDEX": "PIP_EXTRA_INDEX_URL",
    "UV_EXTRA_INDEX_URL": "PIP_EXTRA_INDEX_URL",
    "UV_FIND_LINKS": "PIP_FIND_LINKS",
}
"""Variables that configure uv's index, each with the variable of pip that has the same meaning."""

NO_NETWORK = re.compile(
    r"error sending request|connection (refused|reset|closed)|dns error|network is unreachable|operation timed out"
    r"|network timeout|HTTP status (server error|client error \(429)|no space left on device",
    re.IGNORECASE,
)
"""What uv says if the network or this machine fails, and not what was asked for. No name of a package contains it."""


class Unreachable(SettingsError):
    """The package index cannot be reached, or this machine fails. The same command may work later."""


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
        Unreachable: the network failed.
    """
    program = find()
    if program is None:
        raise SettingsError(f"{problem}: uv is not installed", "Install it: pip install uv")
    variables: Mapping[str, str] = {}
    if arguments[0] == "pip":
        variables, options = index()
        arguments = (*arguments, *options)
    try:
        done = subprocess.run(
            [program, *arguments],
            env={**os.environ, **variables},
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unreachable(f"{problem}: uv did not end within {SECONDS / 60:.0f} minutes", "Run it again.") from None
    except OSError as error:
        raise SettingsError(f"{problem}: {error}", "Run the command again.") from None
    if done.returncode:
        said = without_user(" ".join(done.stderr.split()).removeprefix("error: "))[-400:]
        kind = Unreachable if NO_NETWORK.search(done.stderr) else SettingsError
        raise kind(f"{problem}: {said}", without_user(f"The command was: uv {' '.join(arguments)}"))
    return done.stdout


@cache
def index() -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Return variables and options of uv for the package index that pip is configured for."""
    if any(name in os.environ for name in OWN_INDEX):
        return {}, ()
    try:
        listed = pip.run("config", "list")
    except SettingsError:  # without pip, nothing is configured for it
        return {}, ()
    return _index(listed.stdout)


def _index(listed: str) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Return variables and options of uv for what `pip config list` prints."""
    settings = _settings(listed)
    variables = {
        variable: separator.join(settings[name].split())
        for name, (variable, separator) in INDEX_VARIABLES.items()
        if name in settings
    }
    if "extra-index-url" in settings:
        variables["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # as pip does
    no_index = settings.get("no-index", "").lower() in ("1", "true", "yes", "on")
    return variables, ("--no-index",) if no_index else ()


def index_for_pip() -> Mapping[str, str]:
    """Return variables of pip for uv's own index. Empty if no variable configures one."""
    variables: dict[str, str] = {}
    for name, pip_name in OWN_INDEX.items():
        if (value := os.environ.get(name)) and pip_name not in variables:
            places = re.split(r"[\s,]+" if name == "UV_FIND_LINKS" else r"\s+", value.strip())
            variables[pip_name] = " ".join(re.sub(r"^[\w.-]+=", "", place) for place in places)  # an index may be named
    if variables:
        variables["PIP_NO_INDEX"] = "0"
        if hosts := os.environ.get("UV_INSECURE_HOST"):
            variables["PIP_TRUSTED_HOST"] = hosts
    return variables


def _settings(listed: str) -> Mapping[str, str]:
    """Return pip's settings of the index. Variables override section `install`, which overrides section `global`."""
    settings: dict[str, str] = {}
    for section in ("global", "install", ":env:"):
        for match in re.finditer(rf"^{re.escape(section)}\.([a-z-]+)=(.*)$", listed, re.MULTILINE):
            if match[1] in INDEX_VARIABLES or match[1] == "no-index":
                settings[match[1]] = str(ast.literal_eval(match[2]))
    return settings
