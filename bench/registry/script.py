"""Decides from the syntax tree of a file whether it is a script.

Importing the file to find out would run the training of a script.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

MAKERS = ("partial", "cache", "lru_cache")
"""Functions that return a function."""


def offered(tree: ast.Module, folder: Path, protocol: Mapping[str, frozenset[str]]) -> tuple[str, int] | None:
    """Return the first function that devbench could run, as its name and line. None if the file is a script.

    If the tree does not show whether a name is bound to a function, it counts as one. A file that assigns a model to
    `model`, as in `model = Sequential(…)`, is a script, unless it defines a function `model` or `as_written`. Its other
    functions then only have names of the protocol by chance. The same holds for a function with other parameters in a
    file that does something when it runs.

    Args:
        tree: the syntax tree of the file.
        folder: the folder of the file, whose other files it may import.
        protocol: the functions that devbench could run, each with the names of the parameters that it may have.
    """
    return _ParsedFile.of(tree, folder).offered(protocol)


@dataclass(frozen=True)
class _ParsedFile:
    """A file that may define functions of the protocol.

    Attributes:
        statements: the statements that an import runs, including those in blocks.
        folder: the folder in which its modules are looked up.
        functions: its functions, by their names.
        modules: the modules that it imports, by the names that they have in the file.
        others: the module that another imported name comes from, and the name that it has there.
        seen: files that led here, so that imports in a circle end.
    """

    statements: list[ast.stmt]
    folder: Path
    functions: dict[str, FunctionNode] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    others: dict[str, tuple[str, str]] = field(default_factory=dict)
    seen: frozenset[Path] = frozenset()

    @classmethod
    def of(cls, tree: ast.Module, folder: Path, seen: frozenset[Path] = frozenset()) -> _ParsedFile:
        """Return the file with a syntax tree."""
        file = cls([*_statements(tree.body)], folder, seen=seen)
        for node in file.statements:
            if isinstance(node, FunctionNode):
                file.functions[node.name] = node
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.name if alias.asname else alias.name.partition(".")[0]
                    file.modules[alias.asname or name] = name
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    file.others[alias.asname or alias.name] = ("." * node.level + (node.module or ""), alias.name)
        return file

    def offered(self, protocol: Mapping[str, frozenset[str]]) -> tuple[str, int] | None:
        """Return the first function of the protocol, as its name and line. None if there is none."""
        own = {"model", "as_written"} & self.functions.keys()
        if not own and any(map(self._binds_model, self.statements)):
            return None
        found = [(name, node) for node in self.statements for name in protocol if self._may_define(node, name)]
        if any(map(_acts, self.statements)):
            found = [(name, node) for name, node in found if _fits(node, protocol[name])]
        return next(((name, node.lineno) for name, node in found), None)

    def _may_define(self, node: ast.stmt, name: str) -> bool:
        """Return whether a statement may bind a name to a function."""
        if isinstance(node, FunctionNode):
            return node.name == name and not any(map(_compiles, node.decorator_list))
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            if any(alias.name == "*" for alias in node.names):
                does_more = any(_acts(each) or isinstance(each, ast.Expr) for each in self.statements)
                return self._exports(module, name, default=not does_more)
            imported = next((alias.name for alias in node.names if (alias.asname or alias.name) == name), None)
            return imported is not None and self._exports(module, imported, default=True)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return any(self._binds(target, node.value, name) for target in targets)
        return False

    def _binds(self, target: ast.expr, value: ast.expr, name: str) -> bool:
        """Return whether an assignment of a value to a target may bind a name to a function."""
        if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
            pairs = zip(target.elts, value.elts, strict=False)
            return any(self._binds(part, element, name) for part, element in pairs)
        return isinstance(target, ast.Name) and target.id == name and self._may_be_function(value, name)

    def _may_be_function(self, value: ast.expr, name: str) -> bool:
        """Return whether an expression that is bound to a name may be a function.

        A call may return one if it calls `partial`, a cache, or a function of the file that returns a function.
        """
        if isinstance(value, ast.Lambda):
            return True
        if isinstance(value, ast.IfExp):
            return any(self._may_be_function(part, name) for part in (value.body, value.orelse))
        if isinstance(value, ast.Name):
            return value.id in self.functions or (value.id in self.others and self._exports(*self.others[value.id]))
        if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
            module = self.modules.get(value.value.id)
            if module is None and value.value.id in self.others:
                module = ".".join(filter(None, self.others[value.value.id]))
            return module is not None and self._exports(module, value.attr, default=value.attr == name)
        if not isinstance(value, ast.Call):
            return False
        called = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
        return called in MAKERS or (called in self.functions and _returns_function(self.functions[called]))

    def _exports(self, module: str, name: str, default: bool = True) -> bool:
        """Return whether a module may define a function of a name. The default counts if it is not beside the file."""
        place = self.folder.joinpath(*module.lstrip(".").split(".")) if module.strip(".") else self.folder
        if (place / f"{name}.py").is_file() or (place / name / "__init__.py").is_file():
            return False  # the name is a module
        source = next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)
        if source is None:
            return default
        if source in self.seen:
            return False
        try:
            tree = ast.parse(source.read_bytes(), str(source))
        except (OSError, SyntaxError, ValueError):
            return default
        file = _ParsedFile.of(tree, self.folder, self.seen | {source})
        return any(file._may_define(node, name) for node in file.statements)

    def _binds_model(self, node: ast.stmt) -> bool:
        """Return whether a statement assigns the result of a call to `model`, and the result is not a function."""
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(node.value, ast.Call):
            return False
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        bound = {target.id for target in targets if isinstance(target, ast.Name)}
        return "model" in bound and not self._may_be_function(node.value, "model")


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that an import of the file runs, including those in blocks."""
    for node in body:
        yield node
        if isinstance(node, ast.If) and _is_main_guard(node):
            yield from _statements(node.orelse)
        elif not isinstance(node, FunctionNode | ast.ClassDef):
            for block in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, block, []))
            for part in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
                yield from _statements(part.body)


RUNS_MODEL = ("fit", "fit_generator", "train_on_batch", "evaluate", "predict")
"""Methods that train or run a model."""


def _acts(node: ast.stmt) -> bool:
    """Return whether a statement does something when the file runs: a loop, a main guard, or a call that trains."""
    if isinstance(node, ast.Expr | ast.Assign):
        called = node.value.func if isinstance(node.value, ast.Call) else None
        return isinstance(called, ast.Attribute) and called.attr in RUNS_MODEL
    return isinstance(node, ast.For | ast.While) or (isinstance(node, ast.If) and _is_main_guard(node))


def _is_main_guard(node: ast.If) -> bool:
    return any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test))


def _fits(node: ast.stmt, allowed: frozenset[str]) -> bool:
    """Return whether devbench could call a function. Anything else that binds a name may be such a function."""
    if not isinstance(node, FunctionNode):
        return True
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    required = positional[: len(positional) - len(given.defaults)]
    required += [each for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None]
    return {each.arg for each in required} <= allowed


def _compiles(decorator: ast.expr) -> bool:
    """Return whether a decorator is `tf.function`. No function of the protocol has it."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) == "function"


def _returns_function(function: FunctionNode) -> bool:
    inner = {node.name for node in ast.walk(function) if isinstance(node, FunctionNode) and node is not function}
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    return any(isinstance(value, ast.Lambda) or getattr(value, "id", None) in inner for value in returned)
