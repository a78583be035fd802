"""Doctor's checks of a Python environment that `--env` names."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from bench.errors import SettingsError, UsageError
from bench.machine import python_env, system
from bench.machine.checks import NEWEST_PYTHON, OLDEST_PYTHON
from bench.model.check import Check, run_check
from bench.session import worker_packages

SECONDS = 300.0
"""Time limit for importing TensorFlow, in seconds."""

TENSORFLOWS = (10, *range(16, 22))
"""Minor versions of TensorFlow 2 that workers support."""


def checks(name: str, path: Path) -> Iterator[Check]:
    """Yield the checks of an environment. Never raises.

    Args:
        name: name that the user gave it.
        path: its folder or interpreter.
    """
    try:
        env = python_env.read(name, path)
    except SettingsError as error:
        yield Check("environment", "FAIL", error.message, error.hint)
        return
    detail = (
        f"Python {env.version}, TensorFlow {env.tensorflow or 'of an unknown version'}, {len(env.packages)} packages"
    )
    if _is_supported(env):
        yield Check("environment", "PASS", detail)
    else:
        fix = "Workers may fail. devbench supports Python 3.10 to 3.13 with TensorFlow 2.10 or 2.16 to 2.21."
        yield Check("environment", "WARN", f"{detail}: not supported", fix)
    packages = list(run_check("packages for devbench", lambda: _packages(env)))
    yield from packages
    if all(check.status == "PASS" for check in packages):  # the import needs them
        yield from run_check("TensorFlow", lambda: _tensorflow(env))


def _is_supported(env: python_env.PythonEnv) -> bool:
    python = tuple(map(int, env.version.split(".")[:2]))
    major, _, rest = (env.tensorflow or "").partition(".")
    minor = rest.partition(".")[0]
    known = major == "2" and minor.isdigit()
    return OLDEST_PYTHON <= python <= NEWEST_PYTHON and (not known or int(minor) in TENSORFLOWS)


def _packages(env: python_env.PythonEnv) -> Iterator[Check]:
    try:
        folder = worker_packages.folder_for(env)
    except UsageError as error:
        yield Check("packages for devbench", "FAIL", error.message, error.hint)
        return
    detail = "the environment has them" if folder is None else f"in {folder}; the environment is unchanged"
    yield Check("packages for devbench", "PASS", detail)


def _tensorflow(env: python_env.PythonEnv) -> Iterator[Check]:
    """Import TensorFlow and devbench's worker as a run does."""
    folder = worker_packages.folder_for(env)
    command = system.python_of(env.python, "bench.worker.self_check", str(folder or ""))
    fix = f"Try it: {env.python} -c 'import tensorflow'"
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        yield Check("TensorFlow", "FAIL", f"was not imported within {SECONDS:g} s", fix)
        return
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["the process ended without a message"])[-1]
        yield Check("TensorFlow", "FAIL", f"cannot be imported: {said}", fix)
    else:
        yield Check("TensorFlow", "PASS", f"imported: {done.stdout.strip()}")
