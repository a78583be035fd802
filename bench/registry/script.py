"""Decides from the syntax tree of a file whether it is a script.

Importing the file to find out would run the training of a script.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def is_script(tree: ast.Module, names: Collection[str]) -> bool:
    """Return whether a file is a script: it defines none of the functions that devbench could run.

    If the tree does not show whether a name is bound to a function, the file is not a script. A file that assigns a
    model to `model`, as in `model = Sequential(…)`, is a script, unless it defines a function `model` or `as_written`.
    Its other functions then only have names of the protocol by chance.

    Args:
        tree: the syntax tree of the file.
        names: the names of the functions that devbench could run.
    """
    functions = {node.name: node for node in tree.body if isinstance(node, FunctionNode)}
    statements = list(_statements(tree.body))
    own = {"model", "as_written"} & {node.name for node in statements if isinstance(node, FunctionNode)}
    if not own and any(_binds_model(node, functions) for node in statements):
        return True
    return not any(_may_define(node, names, functions) for node in statements)


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


def _is_main_guard(node: ast.If) -> bool:
    return any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test))


def _may_define(node: ast.stmt, names: Collection[str], functions: dict[str, FunctionNode]) -> bool:
    """Return whether a statement may bind one of the names to a function."""
    if isinstance(node, FunctionNode):
        return node.name in names and not any(map(_compiles, node.decorator_list))
    if isinstance(node, ast.Import | ast.ImportFrom):
        return any(alias.name == "*" or (alias.asname or alias.name) in names for alias in node.names)
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        bound = {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
        return not bound.isdisjoint(names) and _may_be_function(node.value, functions)
    return False


def _binds_model(node: ast.stmt, functions: dict[str, FunctionNode]) -> bool:
    """Return whether a statement assigns the result of a call to `model`, and the result is not a function."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
        return False
    bound = {target.id for target in node.targets if isinstance(target, ast.Name)}
    return "model" in bound and not _may_be_function(node.value, functions)


def _compiles(decorator: ast.expr) -> bool:
    """Return whether a decorator is `tf.function`. No function of the protocol has it."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) == "function"


def _may_be_function(value: ast.expr, functions: dict[str, FunctionNode]) -> bool:
    """Return whether an expression may be a function.

    A call may return one if it calls `partial`, a cache, or a function of the file that returns a function.
    """
    if isinstance(value, ast.Constant):
        return False
    if not isinstance(value, ast.Call):
        return True
    called = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
    return called in ("partial", "cache", "lru_cache") or (called in functions and _returns_function(functions[called]))


def _returns_function(function: FunctionNode) -> bool:
    inner = {node.name for node in ast.walk(function) if isinstance(node, FunctionNode) and node is not function}
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    return any(isinstance(value, ast.Lambda) or getattr(value, "id", None) in inner for value in returned)
