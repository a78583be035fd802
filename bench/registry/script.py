"""Decides from a file's syntax tree whether it is a script, so that nobody's training runs only to be refused."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def is_script(tree: ast.Module, names: Collection[str]) -> bool:
    """Whether a file cannot define any of these functions, judged without running it.

    If the tree cannot tell, the answer is no. A file that binds `model` to a model, such as `model = Sequential(…)`,
    does not follow the protocol. Its functions of the other names are its own.

    Args:
        tree: the file.
        names: the functions that devbench could run.
    """
    functions = {node.name: node for node in tree.body if isinstance(node, FunctionNode)}
    statements = list(_statements(tree.body))
    own = {"model", "as_written"} & {node.name for node in statements if isinstance(node, FunctionNode)}
    if not own and any(_binds_model(node, functions) for node in statements):
        return True
    return not any(_may_define(node, names, functions) for node in statements)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that an import of the file runs, those in blocks included."""
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
    """Whether a statement may bind one of the names to a function."""
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
    """Whether a statement binds `model` to what a call returns, which is no function."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
        return False
    bound = {target.id for target in node.targets if isinstance(target, ast.Name)}
    return "model" in bound and not _may_be_function(node.value, functions)


def _compiles(decorator: ast.expr) -> bool:
    """Whether a decorator is `tf.function`, which no function of the protocol has."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) == "function"


def _may_be_function(value: ast.expr, functions: dict[str, FunctionNode]) -> bool:
    """Whether an expression may be a function. A call may be one if it calls `partial`, a cache or a factory."""
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
