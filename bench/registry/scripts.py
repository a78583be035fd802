"""Describes scripts: files that offer nothing to call, modules and notebooks. Python runs them as they are.

A script is described from its source. It is not imported, because that would run it.
"""

from __future__ import annotations

import ast
import importlib.machinery
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel, Field

from bench.errors import SettingsError, WorkloadError
from bench.model.loops import LOOPS
from bench.registry import notebook, user_file
from bench.registry.description import Resolved
from bench.registry.own_modules import BENCH
from bench.registry.params import parse_params

NOT_LOOPS = {loop: "a script runs only as it is written" for loop in LOOPS if loop != "as-written"}


class Params(BaseModel):
    """What a run can change in a script."""

    batch: int | None = Field(None, ge=1, description="examples per step of its fit. Default: as in the script")


def find_module(name: str) -> Path:
    """Return the file that `python -m` runs for a module, without importing anything.

    Raises:
        WorkloadError: there is no such module, or it is not a file of Python.
    """
    path: list[str] | None = [str(Path.cwd()), *filter(None, sys.path)]
    parts, origin = name.split("."), None
    for position in range(len(parts)):
        found = importlib.machinery.PathFinder.find_spec(".".join(parts[: position + 1]), path)
        if found is None:
            hint = "Give the name as `python -m` takes it. The current folder is searched first."
            raise WorkloadError(f"no module named {name}", hint)
        origin, path = found.origin, list(found.submodule_search_locations or [])
    if path:
        return find_module(f"{name}.__main__")
    if origin is None or not origin.endswith(".py"):
        raise WorkloadError(f"the module {name} is not a Python file", "Give the name of a module with source.")
    return Path(origin)


def resolve(name: str, file: Path, assignments: Mapping[str, Any], module: str | None) -> Resolved:
    """Return the description of a script.

    Args:
        name: its name in results.
        file: its file.
        assignments: parameters by name. A script has none but `batch`.
        module: name of the module, if it runs as `python -m` runs one.

    Raises:
        SettingsError: another parameter is set, or the batch is no positive number.
        WorkloadError: the file cannot be read, or is not Python, or a package that reads notebooks is missing, or a
            module of the script has the name of devbench's package.
    """
    _require_no_own_bench(file, Path.cwd() if module else file.parent)
    cells = notebook.read(file) if notebook.is_notebook(file) else None
    unknown = [name for name in assignments if name not in Params.model_fields]
    if unknown:
        hint = f"Pass arguments to it instead: devbench run {file.name} -- --{unknown[0]} VALUE"
        kind, hint = ("notebook", "Set its values in its cells.") if cells else ("script", hint)
        raise SettingsError(f"{file.name} is a {kind}, so it has no parameter {' or '.join(unknown)}", hint)
    params = parse_params(_with_params(file), assignments).model_dump(exclude_none=True)
    return Resolved(
        name=name,
        file=str(file),
        sha256=cells.sha256 if cells else user_file.checksum(file),
        params=params,
        cases={},
        notes=cells.notes if cells else [],
        not_on={},
        not_loops=NOT_LOOPS,
        not_dtypes={},
        data=None,
        offers=["script"],
        total_steps=None,
        flops=None,
        examples=params.get("batch"),
        epochs=None,
        module=module,
    )


def _require_no_own_bench(file: Path, folder: Path) -> None:
    """Raise if a script, or a module of its own, imports a module `bench` beside it. It would get devbench's package.

    Args:
        file: the script.
        folder: the folder in which it looks for modules first.
    """
    own = next((path for path in (folder / "bench.py", folder / "bench") if path.exists()), None)
    if own is None or own.resolve() == BENCH or (own.is_dir() and not any(own.glob("*.py"))):
        return
    sources, read = [file], set()
    while sources:
        source = sources.pop()
        read.add(source)
        names = _imported(source)
        if "bench" in names:
            raise WorkloadError(
                f"{source.name} imports {own.name} beside it, but devbench's own package has the name bench",
                f"Rename {own}.",
            )
        places = (place for name in names for place in (folder / f"{name}.py", folder / name / "__init__.py"))
        sources += [place for place in places if place.is_file() and place not in read]


def _imported(source: Path) -> set[str]:
    """Return the modules that a script, a notebook or a module imports, without the names of their parts."""
    try:
        cells = notebook.read(source).cells.values() if notebook.is_notebook(source) else [source.read_bytes()]
        trees = [ast.parse(cell) for cell in cells]
    except (OSError, SyntaxError, ValueError, WorkloadError):  # reported where the file is read to run it
        return set()
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return {name.partition(".")[0] for name in names}


def _with_params(file: Path) -> ModuleType:
    """Return a module with the script's name and `Params` and nothing else, as `parse_params` expects one."""
    module = ModuleType(file.stem)
    module.__dict__.update(__file__=str(file), Params=Params)
    return module
