"""Reads a workload's source and imports a user's own: every mistake is told by the user's line, never by ours.

A user's file may be anything: not Python, a script that trains at once, a protocol function that asks for what
devbench does not give. Each is found here, before a worker starts.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import traceback
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from bench.errors import WorkloadError

MAKES_ITS_OWN = frozenset({"p", "ctx"})
ANYTHING = frozenset({"p", "ctx", "model", "data", "inputs"})
FUNCTIONS: dict[str, frozenset[str]] = {
    "data": MAKES_ITS_OWN,
    "inputs": MAKES_ITS_OWN,
    "model": MAKES_ITS_OWN | {"data"},
    "step": ANYTHING,
    "as_written": ANYTHING,
    "evaluate": ANYTHING,
    "probes": ANYTHING,
    "notes": frozenset({"p"}),
    "total_steps": frozenset({"p"}),
    "flops": frozenset({"p"}),
}
"""The protocol's functions, and the arguments that each may ask for: `data` is made before `model`."""

RUNNABLE = ("as_written", "step", "model", "probes")
NEEDED = (
    "A workload needs one of: `as_written` (a generator of steps, or a call of model.fit), `step` (returns a function "
    "of one batch), `model` with `data` (what Keras trains), or `probes`. bench/workloads/__init__.py explains them."
)


@dataclass(frozen=True)
class Description:
    """What a workload's source says of it.

    Attributes:
        name: a built-in's name, or the file's stem.
        path: its file.
        summary: first line of its docstring, "" without one.
        doc: the whole docstring.
        offers: each protocol function that it defines, with the names of its arguments.
        constants: its upper-case names whose value is written as a literal, such as CASES.
    """

    name: str
    path: Path
    summary: str
    doc: str
    offers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)


def describe(file: Path, name: str) -> Description:
    """Reads a workload's source without running it.

    Raises:
        WorkloadError: the file can't be read, or is not Python.
    """
    tree = _parse(file)
    doc = inspect.cleandoc(ast.get_docstring(tree) or "")
    offers: dict[str, tuple[str, ...]] = {}
    constants: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in FUNCTIONS:
            every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            offers[node.name] = tuple(argument.arg for argument in every)
        for target in _targets(node):
            if target.isupper() and isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                try:
                    constants[target] = ast.literal_eval(node.value)
                except (ValueError, TypeError):
                    continue
    return Description(name, file, doc.partition("\n")[0], doc, offers, constants)


def load(file: Path) -> ModuleType:
    """Imports a user's file and checks that it keeps to the protocol. A file is imported once.

    Its folder becomes the first place that it imports from.

    Raises:
        WorkloadError: it does not import, or does not keep to the protocol; with its own line.
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
        _keep_to_protocol(module, file, tree)
    except WorkloadError:
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise WorkloadError(f"{file.name} does not import: {blame(error, file)}", _fix(error)) from error
    return module


def call(module: ModuleType, function: str, **given: Any) -> Any:
    """Calls one of a workload's functions with those of `given` that it asks for.

    Raises:
        WorkloadError: it raised, with its own line.
    """
    target = getattr(module, function)
    wanted = inspect.signature(target).parameters
    try:
        return target(**{name: value for name, value in given.items() if name in wanted})
    except Exception as error:
        file = Path(module.__file__ or "")
        raise WorkloadError(f"`{function}` of {file.name} fails: {blame(error, file)}") from error


def blame(error: BaseException, file: Path) -> str:
    """An exception in a user's program, by the user's own line: the deepest that lies in the folder of `file`."""
    text = f"{type(error).__name__}: {str(error).strip()[:2000]}".removesuffix(": ")
    if isinstance(error, SyntaxError) and error.filename:
        text = f"{type(error).__name__}: {error.msg}"
        return f"{text}\n{_place(Path(error.filename), error.lineno or 0, error.text or '', file)}"
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_own(Path(frame.filename), file)]
    if not own:
        return text
    return f"{text}\n{_place(Path(own[-1].filename), own[-1].lineno or 0, own[-1].line or '', file)}"


def named(module: ModuleType) -> str:
    """What a workload's module is called in a message: its file's stem."""
    return Path(module.__file__ or module.__name__).stem


def checksum(file: Path) -> str:
    """The file's sha256, in hex; "" where it can't be read."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


def _parse(file: Path) -> ast.Module:
    if not file.exists():
        raise WorkloadError(f"there is no file {file}", "A workload is a name of `devbench list`, or a path to a file.")
    try:
        return ast.parse(file.read_bytes(), str(file))
    except OSError as error:
        raise WorkloadError(f"{file} can't be read: {error.strerror or error}") from error
    except (SyntaxError, ValueError) as error:
        raise WorkloadError(f"{file.name} is not Python: {blame(error, file)}") from error


def _compile(tree: ast.Module, file: Path) -> CodeType:
    code: CodeType = compile(tree, str(file), "exec", dont_inherit=True)
    return code


def _keep_to_protocol(module: ModuleType, file: Path, tree: ast.Module) -> None:
    """Finds what the loops could not work with, at the line where it stands."""
    offered = [name for name in FUNCTIONS if hasattr(module, name)]
    lines = {name: node.lineno for node in tree.body for name in _targets(node)}

    def wrong(name: str, message: str, hint: str) -> WorkloadError:
        return WorkloadError(f"{file.name}, line {lines.get(name, 1)}: {message}", hint)

    for name in offered:
        function = getattr(module, name)
        if not (inspect.isroutine(function) or isinstance(function, partial)):
            kind = type(function).__name__
            raise wrong(name, f"`{name}` is a {kind}, not a function", f"Make it in a function: `def {name}(p): …`.")
        for argument in inspect.signature(function).parameters.values():
            if argument.name not in FUNCTIONS[name] and argument.default is argument.empty:
                allowed = ", ".join(sorted(FUNCTIONS[name]))
                message = f"`{name}` asks for `{argument}`, which devbench does not give"
                raise wrong(name, message, f"`{name}` may ask for {allowed}, by name.")
            if argument.kind is argument.POSITIONAL_ONLY:
                hint = "Leave the `/` out: arguments are given by name."
                raise wrong(name, f"`{name}` asks for `{argument.name}` by position", hint)
            if argument.name in {"model", "data", "inputs"} and argument.name not in offered:
                message = f"`{name}` asks for `{argument.name}`, and no function `{argument.name}` makes it"
                raise wrong(name, message, f"Write `def {argument.name}(p): …`.")
    if not set(RUNNABLE) & set(offered):
        raise WorkloadError(f"{file.name} offers nothing to run", NEEDED)
    if {"data", "inputs"} <= set(offered):
        raise wrong("inputs", "it offers both `data` and `inputs`", "Offer the one that a step is fed from.")


def _targets(node: ast.stmt) -> list[str]:
    """The names that a top-level statement binds."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _is_own(found: Path, file: Path) -> bool:
    return found == file or (file.parent in found.parents and "site-packages" not in found.parts)


def _place(found: Path, line: int, source: str, file: Path) -> str:
    shown = found.relative_to(file.parent) if file.parent in found.parents else found
    return f"  {shown}, line {line}" + (f": {source.strip()}" if source.strip() else "")


def _fix(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"Install {error.name.partition('.')[0]} into this environment, or correct the import."
    if isinstance(error, SystemExit):
        return 'It ended itself; put what starts a script under `if __name__ == "__main__":`.'
    return "Correct that line; `python` with the file's name shows the same."
