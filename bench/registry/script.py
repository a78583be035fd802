"""Decides from the syntax tree of a file whether it is a script.

Importing the file to find out would run the training of a script.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.registry.actions import FunctionNode, ParsedProgram, guarded, is_main_guard

MAKERS = ("partial", "cache", "lru_cache")
"""Functions that return a function."""

OWN_NAMES = ("as_written", "inputs", "probes", "Params", "total_steps", "flops")
"""Names that a file has only if it is written for devbench."""

OWN_ARGUMENTS = {"p", "ctx"}
"""Arguments that a function has only if it is written for devbench."""


@dataclass(frozen=True)
class Decision:
    """Whether a file is a script or a workload, and why.

    Attributes:
        is_script: whether the file is a script.
        reason: why, as a clause that begins with "it".
    """

    is_script: bool
    reason: str


def decide(
    tree: ast.Module, folder: Path, protocol: Mapping[str, frozenset[str]], runnable: tuple[str, ...]
) -> Decision:
    """Decide whether a file is a script. It is not run.

    A workload defines functions of the protocol, and leaves it to devbench to call them. A file is a script if it
    defines none, or if it trains or runs a model, or calls these functions, when it runs. Code under a main guard does
    not run if devbench imports the file. Therefore, it makes no script of a complete workload that is written for
    devbench.

    If the tree does not show whether a name is bound to a function, it counts as one. A file that assigns a model to
    `model`, as in `model = Sequential(…)`, is a script, unless it defines a function `model` or `as_written`. Its other
    functions then only have names of the protocol by chance. The same holds for a function with other parameters, and
    for functions that are no complete workload, in a file that does something when it runs.

    Args:
        tree: the syntax tree of the file.
        folder: the folder of the file, whose other files it may import.
        protocol: the functions of the protocol, each with the names of the parameters that it may have.
        runnable: those of them that make a file a workload.
    """
    file = _ParsedFile.of(tree, folder)
    none = Decision(True, f"it defines none of the functions {_listed(runnable)} that devbench could call")
    if not {"model", "as_written"} & file.functions.keys() and any(map(file.binds_model, file.statements)):
        return none
    found = [(name, node) for node in file.statements for name in runnable if file.may_define(node, name)]
    if not found:
        return none
    program = ParsedProgram.of(tree)
    own, complete = file.is_written_for_devbench(protocol), file.is_complete()
    actions = [program.actions(tree.body, strict=own and complete)]
    if not (own and complete):
        actions.append(program.actions(guarded(tree.body)))
    run = next((each.model_run for each in actions if each.model_run is not None), None)
    if run is not None:
        return Decision(True, f"it calls `{run[0]}` itself, in line {run[1]}")
    # A guard that calls only `model` may print its summary.
    calls = [each.called for each in actions if each is actions[0] or "data" in each.called] if not own else []
    called = sorted((lines[name], name) for lines in calls for name, _ in found if name in lines)
    if called:
        return Decision(True, f"it calls its function `{called[0][1]}` itself, in line {called[0][0]}")
    acting = next(filter(file.acts, file.statements), None)
    if acting is not None:
        found = [(name, node) for name, node in found if _fits(node, protocol[name])]
        if found and not complete:
            return Decision(
                True, f"it runs code of its own in line {acting.lineno}, and `{found[0][0]}` alone is no workload"
            )
    return Decision(False, f"it defines `{found[0][0]}` in line {found[0][1].lineno}") if found else none


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


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

    def is_written_for_devbench(self, protocol: Mapping[str, frozenset[str]]) -> bool:
        """Return whether the file has names that are devbench's: `Params`, or functions with an argument `p`."""
        classes = {node.name for node in self.statements if isinstance(node, ast.ClassDef)}
        arguments = {
            each.arg for name, node in self.functions.items() if name in protocol for each in _required(node.args)
        }
        bound = {*self.functions, *self.others, *classes}
        uses_bench = any(name.partition(".")[0] == "bench" for name, _ in self.others.values())
        return bool(bound & {*OWN_NAMES} or arguments & OWN_ARGUMENTS or uses_bench)

    def is_complete(self) -> bool:
        """Return whether the file may define all functions of a workload, such as `model` and `data`."""

        def defines(name: str) -> bool:
            return any(self.may_define(node, name) for node in self.statements)

        if defines("as_written") or defines("probes"):
            return True
        return (defines("data") and (defines("model") or defines("step"))) or (defines("inputs") and defines("step"))

    def acts(self, node: ast.stmt) -> bool:
        """Return whether a statement does something when the file runs: a loop, a main guard, or a call of its own.

        Calls of methods do not count, because most of them only configure something, as in `tf.random.set_seed(1)`.
        """
        called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        if isinstance(called, ast.Name):
            return called.id in self.functions or called.id in self.others or "*" in self.others
        return isinstance(node, ast.For | ast.While) or is_main_guard(node)

    def may_define(self, node: ast.stmt, name: str) -> bool:
        """Return whether a statement may bind a name to a function."""
        if isinstance(node, FunctionNode):
            return node.name == name and not any(map(_compiles, node.decorator_list))
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            if any(alias.name == "*" for alias in node.names):
                does_more = any(self.acts(each) or isinstance(each, ast.Expr) for each in self.statements)
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
        return any(file.may_define(node, name) for node in file.statements)

    def binds_model(self, node: ast.stmt) -> bool:
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
        if isinstance(node, ast.If) and is_main_guard(node):
            yield from _statements(node.orelse)
        elif not isinstance(node, FunctionNode | ast.ClassDef):
            for block in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, block, []))
            for part in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
                yield from _statements(part.body)


def _fits(node: ast.stmt, allowed: frozenset[str]) -> bool:
    """Return whether devbench could call a function. Anything else that binds a name may be such a function."""
    if not isinstance(node, FunctionNode):
        return True
    return {each.arg for each in _required(node.args)} <= allowed


def _required(given: ast.arguments) -> list[ast.arg]:
    """Return the parameters that have no default."""
    positional = [*given.posonlyargs, *given.args]
    keywords = [each for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None]
    return [*positional[: len(positional) - len(given.defaults)], *keywords]


def _compiles(decorator: ast.expr) -> bool:
    """Return whether a decorator is `tf.function`. No function of the protocol has it."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) == "function"


def _returns_function(function: FunctionNode) -> bool:
    inner = {node.name for node in ast.walk(function) if isinstance(node, FunctionNode) and node is not function}
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    return any(isinstance(value, ast.Lambda) or getattr(value, "id", None) in inner for value in returned)
