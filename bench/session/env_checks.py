"""Doctor's checks of a Python environment that `--env` names."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from bench.errors import SettingsError
from bench.machine import python_env, system
from bench.model.check import Check, run_check
from bench.session import worker_packages

SECONDS = 300.0
"""Time limit for importing TensorFlow, in seconds."""


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
    yield Check(
        "environment",
        "PASS",
        f"Python {env.version}, TensorFlow {env.tensorflow or 'of an unknown version'}, {len(env.packages)} packages",
    )
    yield from run_check("packages for devbench", lambda: _packages(env))
    yield from run_check("TensorFlow", lambda: _tensorflow(env))


def _packages(env: python_env.PythonEnv) -> Iterator[Check]:
    try:
        folder = worker_packages.folder_for(env)
    except SettingsError as error:
        yield Check("packages for devbench", "FAIL", error.message, error.hint)
        return
    detail = "the environment has them" if folder is None else f"in {folder}; the environment is unchanged"
    yield Check("packages for devbench", "PASS", detail)


def _tensorflow(env: python_env.PythonEnv) -> Iterator[Check]:
    """Import TensorFlow and devbench's worker as a run does."""
    folder = worker_packages.folder_for(env)
    command = system.python_of(env.python, "bench.worker.self_check", str(folder or ""))
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["the process ended without a message"])[-1]
        fix = f"Try it: {env.python} -c 'import tensorflow'"
        yield Check("TensorFlow", "FAIL", f"cannot be imported: {said}", fix)
    else:
        yield Check("TensorFlow", "PASS", f"imported: {done.stdout.strip()}")
