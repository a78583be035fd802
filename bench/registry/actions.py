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
    "train_and_evaluate",
)
"""Methods that train or run a model."""

TRAINS = (*(name for name in RUNS_MODEL if name not in ("evaluate", "predict")), "assign_sub")
"""Methods that train a model."""

TAPE = "GradientTape"
"""The class that an eager training makes an object of in each step."""

RUNNERS = ("run", "map", "starmap", "submit", "apply_async", "Thread", "Process", "Timer", "Fire", "call")
"""Functions that call the function that they get. Others may only keep it, such as those that register a callback."""

SEARCHES = "search"
"""A method that trains models, if its object is one of `TUNERS`."""

TUNERS = ("keras_tuner", "kerastuner")
WRAPS_KERAS = ("scikeras", "tensorflow", "keras", "tf_keras")
KERAS = ("tensorflow", "keras", "tf_keras")

OTHER_LIBRARIES = (
    "sklearn",
    "scipy",
    "imblearn",
    "xgboost",
    "lightgbm",
    "catboost",
    "umap",
    "statsmodels",
    "nltk",
    "tensorflow_probability",
)
"""Libraries with methods of these names that are no training with Keras."""

PREPARES_DATA = ("ImageDataGenerator",)
"""Classes of Keras with methods of these names that prepare data."""


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
class _Code:
    """Statements that run.

    Attributes:
        body: the statements.
        parameters: the names of the parameters of their function.
        owner: the class of which their function is a method. Empty if there is none.
    """

    body: Sequence[ast.stmt]
    parameters: frozenset[str] = frozenset()
    owner: str = ""


@dataclass(frozen=True)
class ParsedProgram:
    """The functions and classes of a file, and what its names are bound to.

    Attributes:
        functions: all functions, the inner ones too, by their names.
        classes: the classes, by their names.
        values: the values that are assigned to names.
        attributes: the values that are assigned to attributes of `self`.
        modules: the module that an imported name comes from.
    """

    functions: dict[str, list[FunctionNode]] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    values: dict[str, ast.expr] = field(default_factory=dict)
    attributes: dict[str, ast.expr] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: ast.Module) -> ParsedProgram:
        """Return the program with a syntax tree."""
        program = cls()
        methods: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                program.classes[node.name] = node
                methods.update(id(part) for part in node.body)
            elif isinstance(node, FunctionNode) and id(node) not in methods:
                program.functions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.Assign):
                program._assign(node)
            elif isinstance(node, ast.Import):
                program.modules.update({(part.asname or part.name).partition(".")[0]: part.name for part in node.names})
            elif isinstance(node, ast.ImportFrom):
                program.modules.update({part.asname or part.name: node.module or "" for part in node.names})
        return program

    def _assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.values[target.id] = node.value
            elif isinstance(target, ast.Attribute) and _is_self(target.value):
                self.attributes[target.attr] = node.value

    def actions(self, statements: Sequence[ast.stmt], strict: bool = False) -> Actions:
        """Return what statements do when they run.

        Args:
            statements: the statements.
            strict: whether a method trains a model only if its object is known to be one of Keras or of the file.
        """
        model_runs: list[tuple[str, int]] = []
        called: dict[str, int] = {}
        seen: set[int] = set()
        pending = [_Code(statements)]
        while pending:
            code = pending.pop()
            for call in _calls(code.body):
                name = _name(call.func)
                if name == TAPE or self._runs_model(call.func, strict):
                    model_runs.append((name, call.lineno))
                if isinstance(call.func, ast.Name) and name not in code.parameters:
                    called.setdefault(name, call.lineno)
                for function, owner in self._followed(call, code):
                    if id(function) not in seen:
                        seen.add(id(function))
                        pending.append(_Code(function.body, _parameters(function), owner))
        return Actions(min(model_runs, key=lambda run: run[1], default=None), called)

    def _followed(self, call: ast.Call, code: _Code) -> Iterator[tuple[FunctionNode, str]]:
        """Yield the functions of the file that a call runs, each with the class of which it is a method."""
        if isinstance(call.func, ast.Attribute):
            owner = self._class_of(call.func.value, code.owner)
            yield from ((method, owner) for method in self._methods(owner) if method.name == call.func.attr)
        names = [call.func] if isinstance(call.func, ast.Name) else []
        if _name(call.func) in RUNNERS:
            passed = [*call.args, *(keyword.value for keyword in call.keywords)]
            names += [value for value in passed if isinstance(value, ast.Name)]
        for name in names:
            if name.id in code.parameters:
                continue
            yield from ((function, "") for function in self.functions.get(name.id, []))
            for method in self._methods(name.id):
                if name is not call.func or method.name == "__init__":  # the class itself is passed, as to fire
                    yield method, name.id

    def _methods(self, name: str) -> Iterator[FunctionNode]:
        """Yield the methods of a class of the file, with those of its bases in the file."""
        names = [name]
        for each in names:
            if each in self.classes:
                yield from (part for part in self.classes[each].body if isinstance(part, FunctionNode))
                names += [base.id for base in self.classes[each].bases if isinstance(base, ast.Name)]
            if len(names) > len(self.classes) + 1:
                break

    def _class_of(self, node: ast.expr, owner: str) -> str:
        """Return the class of the file of which a value is an object. Empty if that is not known."""
        if _is_self(node):
            return owner
        chain = list(self._origins(node))
        last = chain[-1]
        return last.id if len(chain) > 1 and isinstance(last, ast.Name) and last.id in self.classes else ""

    def _origins(self, node: ast.expr) -> Iterator[ast.expr]:
        """Yield an expression and those that it comes from: the object of a method, the function of a call, a value."""
        followed: set[int] = set()
        while id(node) not in followed:
            followed.add(id(node))
            yield node
            if isinstance(node, ast.Attribute) and _is_self(node.value) and node.attr in self.attributes:
                node = self.attributes[node.attr]
            elif isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
                node = node.value
            elif isinstance(node, ast.Call):
                node = node.func
            elif isinstance(node, ast.Name) and node.id in self.values:
                node = self.values[node.id]

    def _runs_model(self, called: ast.expr, strict: bool) -> bool:
        """Return whether a call trains or runs a model, and does not fit a scaler of sklearn, for example."""
        if not isinstance(called, ast.Attribute) or called.attr not in (*RUNS_MODEL, SEARCHES):
            return False
        *others, root = self._origins(called)
        if any(_name(node) in PREPARES_DATA for node in (*others, root)):
            return False
        module = self.modules.get(root.id, "").split(".")[0] if isinstance(root, ast.Name) else ""
        if called.attr == SEARCHES:
            return module in TUNERS
        if strict:
            own = isinstance(root, ast.Name) and (root.id in self.functions or root.id in self.classes)
            return own or module in KERAS
        return module not in OTHER_LIBRARIES or any(map(self._gets_model, others))

    def trains(self, called: ast.expr) -> bool:
        """Return whether a call trains a model of Keras, as far as the file shows it."""
        if not isinstance(called, ast.Attribute):
            return False
        if called.attr == "apply":
            return "optimizer" in _name(called.value).lower()
        return called.attr == "assign_sub" or (called.attr in TRAINS and self._runs_model(called, strict=False))

    def _gets_model(self, node: ast.expr) -> bool:
        """Return whether an object of another library is made with a model, as by scikeras."""
        if not isinstance(node, ast.Call):
            return False
        arguments = (part for given in (*node.args, *node.keywords) for part in ast.walk(given))
        names = [part.id for part in arguments if isinstance(part, ast.Name)]
        return any(name in self.functions or self.modules.get(name, "").split(".")[0] in WRAPS_KERAS for name in names)


def has_training(tree: ast.Module) -> bool:
    """Return whether a call in a file would train a model, whether it runs or not."""
    program = ParsedProgram.of(tree)
    return any(isinstance(node, ast.Call) and program.trains(node.func) for node in ast.walk(tree))


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _name(called: ast.expr) -> str:
    """Return the name of what is called, without the object that has it."""
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


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
        elif isinstance(node, ast.Lambda):
            parts = []
        elif isinstance(node, ast.If) and is_main_guard(node):
            parts = [*node.orelse]
        else:
            parts = [*ast.iter_child_nodes(node)]
        nodes += reversed(parts)


def _calls(body: Sequence[ast.stmt]) -> Iterator[ast.Call]:
    """Yield the calls that run with statements."""
    nodes = (part for statement in body for part in _executed(statement))
    yield from (node for node in nodes if isinstance(node, ast.Call))


def _parameters(function: FunctionNode) -> frozenset[str]:
    given = function.args
    return frozenset(each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs))
