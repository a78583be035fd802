"""Finds workloads and what they offer, without importing TensorFlow into this process.

A built-in workload does not import TensorFlow at its top, so this process imports it. A user's file may import
TensorFlow, so a short-lived process reads it: `python -m bench.registry FILE` imports the file and prints a description
in JSON. Only the worker imports a user's file with `load`.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from bench import backends
from bench.errors import DevbenchError, UnknownName, WorkloadError
from bench.machine import system
from bench.model.loops import LOOPS
from bench.registry import user_file
from bench.registry.user_file import RUNNABLE, Description

if TYPE_CHECKING:
    from bench.registry.description import ErrorDocument, Inspection, Resolved

__all__ = [
    "MODULE",
    "RUNNABLE",
    "Description",
    "describe",
    "inspect_file",
    "is_module",
    "is_path",
    "is_script",
    "load",
    "names",
    "obstacle",
    "params_schema",
    "resolve",
]

ROOT = Path(__file__).parent.parent
INSPECT_SECONDS = 120.0

MODULE = "-m "
"""Prefix of the name of a module, where a workload could be named instead."""

_RESOLVED: dict[tuple[str, ...], Resolved | ErrorDocument] = {}
"""Cache of the descriptions of users' files, by file, checksum and parameters."""


def names() -> list[str]:
    """Return the names of the built-in workloads, sorted."""
    files = (ROOT / "workloads").glob("*.py")
    return sorted(file.stem.replace("_", "-") for file in files if not file.stem.startswith("_"))


def is_module(name: str | Path) -> bool:
    """Return whether a name means a module that runs as a script, as in "-m package.train"."""
    return isinstance(name, str) and name.startswith(MODULE)


def is_script(name_or_path: str | Path) -> bool:
    """Return whether a file or module is a script, because it offers devbench nothing to call, or runs by itself.

    Raises:
        WorkloadError: the file cannot be read, or is not Python.
    """
    return is_module(name_or_path) or (is_path(name_or_path) and user_file.runs_as_script(_file(name_or_path)))


def is_path(name_or_path: str | Path) -> bool:
    """Return whether a name means a user's program, as a path or as a module, and not a built-in workload."""
    text = str(name_or_path)
    is_file = text.endswith((".py", ".ipynb")) or "/" in text or os.sep in text
    return isinstance(name_or_path, Path) or is_module(text) or is_file


def describe(name_or_path: str | Path) -> Description:
    """Describe a workload from its source, without running it.

    Raises:
        UnknownName: there is no built-in of that name.
        WorkloadError: the file cannot be read, or is not Python.
    """
    file = _file(name_or_path)
    return user_file.describe(file, name=file.stem if is_path(name_or_path) else str(name_or_path))


def load(name_or_path: str | Path) -> ModuleType:
    """Import a workload. A user's file may import TensorFlow.

    Raises:
        UnknownName: there is no built-in of that name.
        WorkloadError: a user's file fails to import, or breaks the protocol. The message names the file's line.
    """
    file = _file(name_or_path)
    if not is_path(name_or_path):
        return importlib.import_module(f"bench.workloads.{file.stem}")
    return user_file.load(file)


def resolve(
    name_or_path: str | Path, assignments: Mapping[str, Any] | None = None, seconds: float = INSPECT_SECONDS
) -> Resolved:
    """Return a workload with all its parameters filled in, and everything that follows from them.

    This never imports TensorFlow into this process.

    Args:
        name_or_path: a built-in's name, or the path of a user's file.
        assignments: parameters by name. To resolve a case, pass its parameters together with the user's.
        seconds: time limit for importing a user's file.

    Raises:
        UnknownName, SettingsError, WorkloadError: as `load` and `parse_params` do.
    """
    from bench.registry import scripts
    from bench.registry.description import ErrorDocument, Resolved, case_params, error_from, resolve_module

    assignments = dict(assignments or {})
    file = _file(name_or_path)
    if is_module(name_or_path):
        module = str(name_or_path).removeprefix(MODULE)
        return scripts.resolve(module, file, assignments, module)
    if is_path(name_or_path) and user_file.runs_as_script(file):
        return scripts.resolve(file.stem, file, assignments, None)
    if not is_path(name_or_path):
        return resolve_module(load(name_or_path), assignments, str(name_or_path), file, None)
    key = _key(file, assignments)
    if key not in _RESOLVED:
        inspection = inspect_file(file, assignments, seconds)
        for case, resolved in inspection.by_case.items():
            _RESOLVED[_key(file, {**case_params(inspection.cases[case]), **assignments})] = resolved
        _RESOLVED[key] = inspection.resolved
        if isinstance(inspection.resolved, Resolved):  # its parameters, all filled in, describe the same
            _RESOLVED[_key(file, inspection.resolved.params)] = inspection.resolved
    answer = _RESOLVED[key]
    if isinstance(answer, ErrorDocument):
        raise error_from(answer)
    return answer


def params_schema(name_or_path: str | Path, seconds: float = INSPECT_SECONDS) -> dict[str, Any]:
    """Return the JSON Schema of a workload's parameters. This never imports TensorFlow into this process.

    Raises:
        UnknownName: as `load` does.
        WorkloadError: as `load` does, or the file is a script.
    """
    if is_path(name_or_path):
        return inspect_file(_file(name_or_path), seconds=seconds).params
    from bench.registry.params import params_type

    return params_type(load(name_or_path)).model_json_schema()


def inspect_file(
    path: Path, assignments: Mapping[str, Any] | None = None, seconds: float = INSPECT_SECONDS
) -> Inspection:
    """Inspect a user's file in a separate process, from which every accelerator is hidden.

    Args:
        path: the file.
        assignments: parameters by name.
        seconds: time limit.

    Raises:
        WorkloadError: the file is a script, fails to import, breaks the protocol, ends the process, or exceeds the time
            limit.
        DevbenchError: the system refuses to start the process.
    """
    from bench.registry.description import ErrorDocument, Inspection, error_from

    file = path.resolve()
    if user_file.runs_as_script(file):
        raise WorkloadError(f"{file.name} is a script, not a workload", f"Run it: devbench run {path}")
    quiet = {**backends.hiding_variables(), "TF_CPP_MIN_LOG_LEVEL": "3"}
    python_path = os.pathsep.join(filter(None, [str(ROOT.parent), os.environ.get("PYTHONPATH")]))
    try:
        process = subprocess.run(
            [*system.python("bench.registry"), str(file)],
            input=json.dumps(dict(assignments or {})),
            capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=seconds, check=False,
            env={**os.environ, **quiet, "PYTHONPATH": python_path, "PYTHONIOENCODING": "utf-8"},
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise WorkloadError(
            f"importing {file} took longer than {seconds:g} s",
            "Put the work into the protocol's functions. The top of the file should only import and define.\n"
            "If the imports themselves take that long, raise the limit: --worker-timeout 10m"
            + user_file.as_script(file),
        ) from error
    except OSError as error:  # such as a limit of processes
        raise DevbenchError(f"cannot start the process that imports {file.name}: {error.strerror}") from error
    if process.returncode or not process.stdout.strip():
        last_lines = "\n".join(process.stderr.strip().splitlines()[-5:])
        message = f"importing {file} ended the process with exit code {_exit_code(process.returncode)}"
        raise WorkloadError(message, last_lines)
    document = json.loads(process.stdout)
    if "error" in document:
        raise error_from(ErrorDocument.model_validate(document))
    return Inspection.model_validate(document)


def obstacle(offers: Collection[str], not_loops: Mapping[str, str], loop: str) -> str | None:
    """Return why a loop cannot run a workload, as a clause to follow "because"; None if it can.

    The loop `fit` also needs a compiled model. That shows only when the model is built, so the worker checks it.

    Args:
        offers: the protocol functions that the workload defines.
        not_loops: the workload's `NOT_LOOPS`.
        loop: the loop.

    Raises:
        UnknownName: there is no such loop.
    """
    if loop not in LOOPS:
        raise UnknownName("loop", loop, LOOPS)
    if loop in not_loops:
        return not_loops[loop]
    trains = {"model", "data"} <= set(offers)
    has_step = "step" in offers or trains
    if loop == "as-written":
        runs = has_step or not {"as_written", "probes", "script"}.isdisjoint(offers)
        return None if runs else "it defines neither a step nor data to train its model on"
    if loop == "fit":
        missing = "model for Keras to train" if "model" not in offers else "data for Keras to train on"
        return None if trains else f"it defines no {missing}"
    if has_step:
        return None
    return "it defines no step" + (", only probes, which are timed one by one" if "probes" in offers else "")


def _exit_code(code: int) -> str:
    """Return an exit code, with the name of the signal if it was one."""
    name = next((number.name for number in signal.Signals if number.value == -code), "")
    return f"{code} ({name})" if name else str(code)


def _file(name_or_path: str | Path) -> Path:
    if is_module(name_or_path):
        from bench.registry import scripts

        return scripts.find_module(str(name_or_path).removeprefix(MODULE)).resolve()
    if is_path(name_or_path):
        return Path(name_or_path).expanduser().resolve()
    if name_or_path not in names():
        raise UnknownName("workload", str(name_or_path), names(), "To run your own file, give its path: ./mine.py")
    return ROOT / "workloads" / f"{str(name_or_path).replace('-', '_')}.py"


def _key(file: Path, assignments: Mapping[str, Any]) -> tuple[str, ...]:
    values = {name: str(value) for name, value in assignments.items()}
    return (str(file), user_file.checksum(file), json.dumps(values, sort_keys=True))
