"""Finds in the syntax tree of a file what it does when it runs, without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

RUNS_MODEL = (
    "fit",
    "fit_generator",
    "train_on_batch",
    "evaluate",
    "predict",
    "apply_gradients",
    "minimize",
)
"""Methods that train or run a model."""

TAPE = "GradientTape"
"""The class that an eager training makes an object of in each step."""

WRAPPERS = ("partial", "cache", "lru_cache", "function", "custom_gradient", "recompute_grad")
"""Functions that return the function that they get, and do not call it yet."""

OTHER_LIBRARIES = ("sklearn", "scipy")
"""Libraries with methods of these names that prepare data."""


@dataclass(frozen=True)
class Actions:
    """What code does when it runs, including the functions of the file that it calls.

    Attributes:
        model_run: the name and line of the first call that trains or runs a model. None if there is none.
        called: the functions that are called by name, each with the line of its first call.
    """

    model_run: tuple[str, int] | None
    called: Mapping[str, int]


@dataclass(frozen=True)
class ParsedProgram:
    """The functions of a file, and what its names are bound to.

    Attributes:
        functions: all functions, methods and inner functions, by their names. A class has its `__init__`.
        values: the values that are assigned to names.
        modules: the module that an imported name comes from.
    """

    functions: dict[str, list[FunctionNode]] = field(default_factory=dict)
    values: dict[str, ast.expr] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: ast.Module) -> ParsedProgram:
        """Return the program with a syntax tree."""
        program = cls()
        for node in ast.walk(tree):
            if isinstance(node, FunctionNode):
                program.functions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.ClassDef):
                starts = [part for part in node.body if isinstance(part, FunctionNode) and part.name == "__init__"]
                program.functions.setdefault(node.name, []).extend(starts)
            elif isinstance(node, ast.Assign):
                program.values.update(
                    {target.id: node.value for target in node.targets if isinstance(target, ast.Name)}
                )
            elif isinstance(node, ast.Import):
                program.modules.update({(part.asname or part.name).partition(".")[0]: part.name for part in node.names})
            elif isinstance(node, ast.ImportFrom):
                program.modules.update({part.asname or part.name: node.module or "" for part in node.names})
        return program

    def actions(self, statements: Sequence[ast.stmt]) -> Actions:
        """Return what statements do when they run."""
        model_runs: list[tuple[str, int]] = []
        called: dict[str, int] = {}
        seen: set[int] = set()
        blocks: list[tuple[Sequence[ast.stmt], frozenset[str]]] = [(statements, frozenset())]
        while blocks:
            body, parameters = blocks.pop()
            for name, call in _calls(body):
                if name == TAPE or (isinstance(call, ast.Attribute) and self._runs_model(name, call)):
                    model_runs.append((name, call.lineno))
                if isinstance(call, ast.Name) and name not in parameters:
                    called.setdefault(name, call.lineno)
                for function in self.functions.get(name, []) if name not in parameters else []:
                    if id(function) not in seen:
                        seen.add(id(function))
                        blocks.append((function.body, _parameters(function)))
        return Actions(min(model_runs, key=lambda run: run[1], default=None), called)

    def _runs_model(self, name: str, called: ast.Attribute) -> bool:
        """Return whether a method may train or run a model, and not a scaler of sklearn, for example."""
        if name not in RUNS_MODEL:
            return False
        node: ast.expr = called
        followed: set[str] = set()
        while True:
            if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
                node = node.value
            elif isinstance(node, ast.Call):
                node = node.func
            elif isinstance(node, ast.Name) and node.id in self.values and node.id not in followed:
                followed.add(node.id)
                node = self.values[node.id]
            else:
                break
        return not (isinstance(node, ast.Name) and self.modules.get(node.id, "").split(".")[0] in OTHER_LIBRARIES)


def guarded(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the statements that run only if the file is the main program."""
    guards = [node for statement in body for node in _executed(statement) if is_main_guard(node)]
    return [statement for guard in guards if isinstance(guard, ast.If) for statement in guard.body]


def is_main_guard(node: ast.AST) -> bool:
    """Return whether a node is a statement such as `if __name__ == "__main__":`."""
    return isinstance(node, ast.If) and any(
        isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test)
    )


def _executed(statement: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and the nodes within it that run with it: no bodies of functions, classes and main guards."""
    nodes = [statement]
    while nodes:
        node = nodes.pop()
        yield node
        if isinstance(node, FunctionNode):
            parts: list[ast.AST] = [*node.decorator_list, *node.args.defaults]
        elif isinstance(node, ast.ClassDef | ast.Lambda):
            parts = []
        elif isinstance(node, ast.If) and is_main_guard(node):
            parts = [*node.orelse]
        else:
            parts = [*ast.iter_child_nodes(node)]
        nodes += reversed(parts)


def _calls(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.Name | ast.Attribute]]:
    """Yield what statements call, by name: functions and methods, and functions passed on, as in `app.run(main)`."""
    for node in (part for statement in body for part in _executed(statement)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if isinstance(node.func, ast.Name | ast.Attribute):
            yield name, node.func
        if name not in WRAPPERS:
            passed = [*node.args, *(keyword.value for keyword in node.keywords)]
            yield from ((value.id, value) for value in passed if isinstance(value, ast.Name))


def _parameters(function: FunctionNode) -> frozenset[str]:
    given = function.args
    return frozenset(each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs))
