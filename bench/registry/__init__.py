"""What there is to run, and where: names from the files present, parameters from `Params`, all without TensorFlow.

A built-in imports no TensorFlow at its top, so it is imported right here. A user's file may, and this process
must not, so it is asked in a short-lived one: `python -m bench.registry FILE` loads it and answers in JSON.
Only the worker calls `load` for a user's file. How a file is read is `userfile`'s part.
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
from typing import Any

from bench import backends
from bench.errors import UnknownName, WorkloadError
from bench.machine import system
from bench.model.spec import LOOPS
from bench.registry import user_file
from bench.registry.description import Inspection, Problem, Resolved, answer, error_of, params_of
from bench.registry.params import params_type, parse_params
from bench.registry.user_file import Description, blame

__all__ = [
    "Description",
    "Inspection",
    "Resolved",
    "applicable",
    "blame",
    "describe",
    "inspect_file",
    "load",
    "names",
    "params_schema",
    "params_type",
    "parse_params",
    "resolve",
]

ROOT = Path(__file__).parent.parent
INSPECT_SECONDS = 120.0


def names() -> list[str]:
    """The built-in workloads."""
    return _modules(ROOT / "workloads")


def describe(name_or_path: str | Path) -> Description:
    """What a workload is and offers, read from its source without running it.

    Raises:
        UnknownName: there is no such built-in.
        WorkloadError: the file can't be read, or is not Python.
    """
    file = _file(name_or_path)
    return user_file.describe(file, name=file.stem if _is_path(name_or_path) else str(name_or_path))


def load(name_or_path: str | Path) -> ModuleType:
    """Imports a workload. A user's file may bring TensorFlow with it.

    Raises:
        UnknownName: there is no such built-in.
        WorkloadError: a user's file does not import, or does not keep to the protocol; with its own line.
    """
    file = _file(name_or_path)
    if not _is_path(name_or_path):
        return importlib.import_module(f"bench.workloads.{file.stem}")
    return user_file.load(file)


def resolve(
    name_or_path: str | Path, assignments: Mapping[str, Any] | None = None, seconds: float = INSPECT_SECONDS
) -> Resolved:
    """A workload with its parameters filled in, and what follows from them. Never imports TensorFlow here.

    To resolve a case, give its parameters together with the user's. A user's file has `seconds` to import.

    Raises:
        UnknownName, SettingsError, WorkloadError: as `load` and `parse_params` do.
    """
    given = dict(assignments or {})
    if not _is_path(name_or_path):
        return answer(load(name_or_path), given, str(name_or_path), _file(name_or_path), None)
    file = _file(name_or_path)
    key = _key(file, given)
    if key not in _ANSWERS:
        found = inspect_file(file, given, seconds)
        for case, told in found.by_case.items():
            _ANSWERS[_key(file, {**params_of(found.cases[case]), **given})] = told
        _ANSWERS[key] = found.resolved
    return _opened(_ANSWERS[key])


def params_schema(name_or_path: str | Path, seconds: float = INSPECT_SECONDS) -> dict[str, Any]:
    """JSON Schema of a workload's parameters, never importing TensorFlow here.

    Raises:
        UnknownName, WorkloadError: as `load` does.
    """
    if _is_path(name_or_path):
        return inspect_file(_file(name_or_path), seconds=seconds).params
    return params_type(load(name_or_path)).model_json_schema()


def inspect_file(
    path: Path, assignments: Mapping[str, Any] | None = None, seconds: float = INSPECT_SECONDS
) -> Inspection:
    """Asks a process of its own what a user's file says of itself; that process sees no accelerator.

    Raises:
        WorkloadError: the file does not import, lacks the protocol, ends the process, or takes too long.
    """
    file = path.resolve()
    quiet = {**backends.hidden(), "TF_CPP_MIN_LOG_LEVEL": "3"}
    root = str(ROOT.parent)
    path_list = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    try:
        done = subprocess.run(
            [*system.python("bench.registry"), str(file)],
            input=json.dumps(dict(assignments or {})),
            capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=seconds, check=False,
            env={**os.environ, **quiet, "PYTHONPATH": path_list, "PYTHONIOENCODING": "utf-8"},
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise WorkloadError(
            f"{file} did not finish importing within {seconds:g} s",
            "Keep the work inside the protocol's functions; at its top a file only imports and defines.\n"
            "If that takes so long, give it more with --worker-timeout 10m.",
        ) from error
    if done.returncode or not done.stdout.strip():
        last = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise WorkloadError(f"importing {file} ended its process with exit code {_told(done.returncode)}", last)
    document = json.loads(done.stdout)
    if "error" in document:
        raise error_of(Problem.model_validate(document))
    return Inspection.model_validate(document)


def applicable(offers: Collection[str], not_loops: Mapping[str, str], loop: str) -> str | None:
    """Why a loop can't drive a workload that offers these functions, to follow "because"; none where it can.

    A model that is not compiled shows only when it is built: then the worker refuses `fit`.

    Raises:
        UnknownName: there is no such loop.
    """
    if loop not in LOOPS:
        raise UnknownName("loop", loop, LOOPS)
    if loop in not_loops:
        return not_loops[loop]
    trains = {"model", "data"} <= set(offers)
    steps = "step" in offers or trains
    if loop == "as-written":
        whole = steps or not {"as_written", "probes"}.isdisjoint(offers)
        return None if whole else "it offers a model but neither data to train it on nor a step"
    if loop == "fit":
        missing = "model for Keras to train" if "model" not in offers else "data for Keras to train on"
        return None if trains else f"there is no {missing}"
    if steps:
        return None
    if "probes" in offers:
        return "its probes are timed one by one, and there is no step to call"
    return "there is no step to call: its work is a piece of Python"


def _told(code: int) -> str:
    """An exit code, with the signal's name where it was one."""
    name = next((each.name for each in signal.Signals if each.value == -code), "")
    return f"{code} ({name})" if name else str(code)


_ANSWERS: dict[tuple[str, ...], Resolved | Problem] = {}


def _modules(folder: Path) -> list[str]:
    return sorted(file.stem.replace("_", "-") for file in folder.glob("*.py") if not file.stem.startswith("_"))


def _is_path(name_or_path: str | Path) -> bool:
    text = str(name_or_path)
    return isinstance(name_or_path, Path) or text.endswith(".py") or "/" in text or os.sep in text


def _file(name_or_path: str | Path) -> Path:
    if _is_path(name_or_path):
        return Path(name_or_path).expanduser().resolve()
    if name_or_path not in names():
        raise UnknownName("workload", str(name_or_path), names(), "A file of your own is named by its path, ./mine.py.")
    return ROOT / "workloads" / f"{str(name_or_path).replace('-', '_')}.py"


def _key(file: Path, given: Mapping[str, Any]) -> tuple[str, ...]:
    values = {name: str(value) for name, value in given.items()}
    return (str(file), user_file.checksum(file), json.dumps(values, sort_keys=True))


def _opened(told: Resolved | Problem) -> Resolved:
    if isinstance(told, Problem):
        raise error_of(told)
    return told
