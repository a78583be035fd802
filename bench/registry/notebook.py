"""Reads the code cells of a Jupyter notebook as Python.

A cell is named by its number among the code cells that are not empty. That is the number that Jupyter shows beside it
if the notebook is run once from the top. Lines keep their numbers within the cell.
"""

from __future__ import annotations

import ast
import hashlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import Interrupted, WorkloadError
from bench.registry.program_errors import error_text
from bench.version import install_command

SUFFIX = ".ipynb"

BODY_RUNS = ("%%capture", "%%time")
"""Cell magics below which the cell is Python. devbench skips the magic and runs the cell."""


@dataclass(frozen=True)
class Notebook:
    """The program of a notebook.

    Attributes:
        cells: the code of each cell, by a name such as "train.ipynb, cell 3".
        notes: what is left out, one sentence each.
    """

    cells: dict[str, str]
    notes: list[str]

    @property
    def sha256(self) -> str:
        """Checksum of the code. The outputs that Jupyter stores in the file do not count."""
        return hashlib.sha256("\0".join(self.cells.values()).encode()).hexdigest()


def is_notebook(path: str | Path) -> bool:
    """Return whether a path names a notebook."""
    return Path(path).suffix == SUFFIX


def read(file: Path) -> Notebook:
    """Return the program of a notebook, without running it.

    Magics and shell commands become calls of methods of `get_ipython()`, which do nothing in the worker.

    Raises:
        WorkloadError: the file cannot be read, is no notebook, or is not in Python, or a package is missing.
    """
    try:
        import nbformat
        from IPython.core.inputtransformer2 import TransformerManager  # noqa: F401
    except ImportError as error:
        hint = f"In a checkout of devbench, run: {install_command('notebook')}"
        raise WorkloadError(f"{file.name} is a notebook, and {error.name} is not installed", hint) from error
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise WorkloadError(f"{file} does not exist", "Give the path of a notebook.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise WorkloadError(f"{file} cannot be read: {getattr(error, 'strerror', '') or error}") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about cells without an id
            document = nbformat.reads(text, as_version=4)
    except Interrupted:
        raise
    except Exception as error:  # nbformat and its validators raise errors of many types
        raise WorkloadError(f"{file.name} is not a notebook: {error_text(error, None)}") from error
    _require_python(document.metadata, file)
    return _program([cell.source for cell in document.cells if cell.cell_type == "code"], file)


def _require_python(metadata: Any, file: Path) -> None:
    """Check the language of a notebook. A notebook of Colab names only its kernel.

    Raises:
        WorkloadError: the language is not Python, or is not known.
    """
    kernel = metadata.get("kernelspec", {})
    language = metadata.get("language_info", {}).get("name") or kernel.get("language") or kernel.get("name", "")
    if not language.lower().startswith(("python", "ipython")):
        which = f"is a notebook in {language}, not in Python" if language else "does not say which language it is in"
        hint = "Open it in Jupyter, choose a Python kernel, and save it." if not language else ""
        raise WorkloadError(f"{file.name} {which}", hint or "devbench runs notebooks in Python only.")


def _program(sources: list[str], file: Path) -> Notebook:
    cells: dict[str, str] = {}
    notes: list[str] = []
    for source in filter(str.strip, sources):
        name = f"{file.name}, cell {len(cells) + 1}"
        path = file.parent / name
        try:
            cells[name], skipped = _python(source, str(path))
        except SyntaxError as error:
            raise WorkloadError(f"{file.name} is not Python: {error_text(error, file)}") from error
        notes += [f"{name}, line {line}: `{text}` was skipped." for line, text in sorted(skipped.items())]
    return Notebook(cells, notes)


def _python(source: str, path: str) -> tuple[str, dict[int, str]]:
    """Return a cell as Python, and the text of each line that devbench skips, by the number of the line.

    Args:
        source: the cell.
        path: its name in errors.

    Raises:
        SyntaxError: it is not Python.
    """
    lines = source.split("\n")
    skipped: dict[int, str] = {}
    first = next(number for number, line in enumerate(lines) if line.strip())
    if lines[first].split()[0] in BODY_RUNS:
        skipped[first + 1] = lines[first].strip()
        lines[first] = ""
    code = _transformed("\n".join(lines))
    for call in _shell_calls(ast.parse(code, path)):
        arguments = [str(part.value) for part in call.args if isinstance(part, ast.Constant)]
        if arguments[:1] == ["time"] and "".join(arguments[1:]):  # `%time` with a statement, which runs
            code = _replaced(code, call, arguments[1])
        else:
            skipped[call.lineno] = lines[call.lineno - 1].strip().removesuffix("\\").rstrip()
    ast.parse(code, path)
    return code, skipped


def _transformed(source: str) -> str:
    """Return a cell with its magics and shell commands as Python, and with the same number of lines."""
    from IPython.core.inputtransformer2 import TransformerManager

    manager: Any = TransformerManager()
    transform_once = manager.do_one_token_transform

    def aligned(lines: list[str]) -> tuple[bool, list[str]]:
        # A command over several lines becomes one line. Empty lines below it keep the numbers of the others.
        changed, new = transform_once(lines)
        at = next((n for n, pair in enumerate(zip(lines, new, strict=False)) if pair[0] != pair[1]), len(new))
        return changed, [*new[: at + 1], *["\n"] * (len(lines) - len(new)), *new[at + 1 :]]

    manager.do_one_token_transform = aligned
    lines = source.split("\n")
    empty = next((number for number, line in enumerate(lines) if line.strip()), 0)  # IPython would drop these
    return "\n" * empty + str(manager.transform_cell("\n".join(lines[empty:])))


def _shell_calls(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls of methods of `get_ipython()`, the last first."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset), reverse=True):
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "get_ipython()":
            yield call


def _replaced(code: str, call: ast.Call, text: str) -> str:
    """Return code with another text in place of a call. Columns are counted in bytes."""
    lines = code.encode().splitlines(keepends=True)
    line = lines[call.lineno - 1]
    lines[call.lineno - 1] = line[: call.col_offset] + text.encode() + line[call.end_col_offset :]
    return b"".join(lines).decode()
