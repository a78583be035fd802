"""Reads the source of workloads, and imports users' files.

A user's file may contain anything: text that is not Python, a script that trains when it is imported, or a protocol
function with an argument that devbench does not pass. This module finds such mistakes before a worker starts. Its
errors name the line of the user's file.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from bench.errors import Interrupted, WorkloadError
from bench.registry.notebook import is_notebook, read
from bench.registry.program_errors import error_text
from bench.registry.script import Decision, decide

_SETTINGS = frozenset({"p", "ctx"})
_ALL = frozenset({"p", "ctx", "model", "data", "inputs"})
FUNCTIONS: dict[str, frozenset[str]] = {
    "data": _SETTINGS,
    "inputs": _SETTINGS,
    "model": _SETTINGS | {"data"},
    "step": _ALL,
    "as_written": _ALL,
    "evaluate": _ALL,
    "probes": _ALL,
    "notes": frozenset({"p"}),
    "total_steps": frozenset({"p"}),
    "flops": frozenset({"p"}),
}
"""The protocol's functions, and the arguments that each may take. `data` is called before `model`."""

RUNNABLE = ("as_written", "step", "model", "probes")
_RUNNABLE_HINT = (
    "Define one of these functions: `as_written` (a generator of steps, or a function that calls model.fit), `step` "
    "(returns a function of one batch), `model` and `data` (for Keras to train), or `probes`. "
    "See bench/workloads/__init__.py."
)


@dataclass(frozen=True)
class Description:
    """What a workload's source shows without being run.

    Attributes:
        name: a built-in's name, or the file's name without its suffix.
        path: its file.
        summary: first line of its docstring; "" if it has none.
        doc: its docstring.
        offers: the protocol functions that it defines, each with the names of its arguments.
        constants: its upper-case names with literal values, such as CASES.
    """

    name: str
    path: Path
    summary: str
    doc: str
    offers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)


def describe(file: Path, name: str) -> Description:
    """Describe a workload from its source, without running it.

    Raises:
        WorkloadError: the file cannot be read, or is not Python.
    """
    if is_notebook(file):
        read(file)
        return Description(name, file, "", "")
    tree = _parse(file)
    doc = inspect.cleandoc(ast.get_docstring(tree) or "")
    offers: dict[str, tuple[str, ...]] = {}
    constants: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in FUNCTIONS:
            arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            offers[node.name] = tuple(argument.arg for argument in arguments)
        for target in _targets(node):
            if target.isupper() and isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                try:
                    constants[target] = ast.literal_eval(node.value)
                except (ValueError, TypeError):
                    continue
    return Description(name, file, doc.partition("\n")[0], doc, offers, constants)


def runs_as_script(file: Path) -> bool:
    """Return whether a file is a script. The file is not run.

    Raises:
        WorkloadError: the file cannot be read, or is not Python.
    """
    return decision(file).is_script


def decision(file: Path) -> Decision:
    """Return whether a file is a script or a workload, and why. The file is not run.

    Raises:
        WorkloadError: the file cannot be read, or is not Python.
    """
    if is_notebook(file):
        return Decision(True, "it is a notebook")
    return decide(_parse(file), file.parent, FUNCTIONS, RUNNABLE)


def load(file: Path) -> ModuleType:
    """Import a user's file and check that it follows the protocol. A file is imported only once.

    The file's folder becomes the first entry of `sys.path`.

    Raises:
        WorkloadError: the file fails to import, or breaks the protocol. The message names the file's line.
    """
    tree = _parse(file)
    name = f"devbench_workload_{file.stem}_{checksum(file)[:12]}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name, ast.get_docstring(tree))
    module.__file__ = str(file)
    if sys.path[:1] != [str(file.parent)]:
        sys.path.insert(0, str(file.parent))
    sys.modules[name] = module
    try:
        exec(_compile(tree, file), module.__dict__)
        _check_protocol(module, file, tree)
    except WorkloadError:
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise WorkloadError(f"{file.name} cannot be imported: {error_text(error, file)}", _fix(error, file)) from error
    return module


def call(module: ModuleType, function: str, **arguments: Any) -> Any:
    """Call one of a workload's functions with those of `arguments` that it takes.

    Raises:
        WorkloadError: the function raised. The message names the file's line.
    """
    target = getattr(module, function)
    parameters = inspect.signature(target).parameters
    try:
        return target(**{name: value for name, value in arguments.items() if name in parameters})
    except Interrupted:
        raise
    except Exception as error:
        file = Path(module.__file__ or "")
        raise WorkloadError(f"`{function}` of {file.name} failed: {error_text(error, file)}") from error


def workload_name(module: ModuleType) -> str:
    """Return the name of a workload in messages: the name of its file without the suffix."""
    return Path(module.__file__ or module.__name__).stem


def checksum(file: Path) -> str:
    """Return the file's sha256 as hex digits; "" if it cannot be read."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


def _parse(file: Path) -> ast.Module:
    if not file.exists():
        raise WorkloadError(f"{file} does not exist", "Give a name that `devbench list` shows, or the path of a file.")
    try:
        return ast.parse(file.read_bytes(), str(file))
    except OSError as error:
        raise WorkloadError(f"{file} cannot be read: {error.strerror or error}") from error
    except (SyntaxError, ValueError) as error:
        raise WorkloadError(f"{file.name} is not Python: {error_text(error, file)}") from error


def _compile(tree: ast.Module, file: Path) -> CodeType:
    code: CodeType = compile(tree, str(file), "exec", dont_inherit=True)
    return code


def _check_protocol(module: ModuleType, file: Path, tree: ast.Module) -> None:
    """Check that devbench can call the file's functions. Errors name the line.

    Raises:
        WorkloadError: a function, or the set of functions, breaks the protocol.
    """
    defined = [name for name in FUNCTIONS if hasattr(module, name)]
    lines = {name: node.lineno for node in tree.body for name in _targets(node)}

    def protocol_error(name: str, message: str, hint: str) -> WorkloadError:
        return WorkloadError(f"{file.name}, line {lines.get(name, 1)}: {message}", f"{hint}{as_script(file)}")

    for name in defined:
        function = getattr(module, name)
        if not (inspect.isroutine(function) or isinstance(function, partial)):
            kind = type(function).__name__
            raise protocol_error(
                name, f"`{name}` is a {kind}, not a function", f"Write a function: `def {name}(p): …`."
            )
        for argument in inspect.signature(function).parameters.values():
            if argument.name not in FUNCTIONS[name] and argument.default is argument.empty:
                allowed = ", ".join(sorted(FUNCTIONS[name]))
                message = f"`{name}` has an argument `{argument}`, which devbench does not pass"
                raise protocol_error(name, message, f"`{name}` can take {allowed}.")
            if argument.kind is argument.POSITIONAL_ONLY:
                hint = "Remove the `/`. devbench passes arguments by name."
                raise protocol_error(name, f"`{name}` takes `{argument.name}` by position only", hint)
            if argument.name in {"model", "data", "inputs"} and argument.name not in defined:
                message = f"`{name}` takes `{argument.name}`, but no function `{argument.name}` is defined"
                raise protocol_error(name, message, f"Write `def {argument.name}(p): …`.")
    if not set(RUNNABLE) & set(defined):
        raise WorkloadError(f"{file.name} defines nothing to run", _RUNNABLE_HINT)
    if {"data", "inputs"} <= set(defined):
        raise protocol_error("inputs", "both `data` and `inputs` are defined", "Define only the one that feeds a step.")


def as_script(file: Path) -> str:
    """Return a line on how to run a file as a script. Empty if it is no module below the working folder."""
    folder = Path.cwd().resolve()
    parts = file.relative_to(folder).with_suffix("").parts if file.is_relative_to(folder) else ()
    if not parts or not all(part.isidentifier() for part in parts):
        return ""
    return f"\nTo run the file as a script: devbench run -m {'.'.join(parts)}"


def _targets(node: ast.stmt) -> list[str]:
    """Return the names that a top-level statement binds."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _fix(error: BaseException, file: Path) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"Install {error.name.partition('.')[0]} in this environment, or correct the import."
    if isinstance(error, SystemExit):
        return 'The file ended the process. Put code that starts a script under `if __name__ == "__main__":`.'
    return f"Correct that line. To see the full traceback, run: python {file.name}"
