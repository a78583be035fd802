"""What holds over all files. Which floor imports which is import-linter's, in `make check`."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
TENSORFLOW = {"tensorflow", "keras", "tensorflow_directml_plugin"}
# Pieces, so that this file does not hold what it forbids.
HOSTS = [
    ("pypi", "org"),
    ("pythonhosted", "org"),
    ("registry", "npmjs", "org"),
    ("proxy", "golang", "org"),
    ("static", "crates", "io"),
    ("deb", "debian", "org"),
    ("conda", "anaconda", "org"),
]
FOLDERS = [
    ("root", r"\.\w"),
    ("work", r"[\w.]"),
    ("home", r"\w+/"),
    ("Users", r"\w+/"),
    ("farm", r"\w"),
    ("tmp", "bash_jobs"),
]


def sources() -> list[Path]:
    return sorted((ROOT / "bench").rglob("*.py"))


def texts() -> Iterator[tuple[Path, str]]:
    """Every text file that belongs to the project: what tools and runs leave behind has a dot or is ignored."""
    ours = [ROOT / ".ci", ROOT / ".gitignore"]
    left = {"results", "dist", "__pycache__"}
    ours += [path for path in ROOT.iterdir() if not path.name.startswith(".") and path.name not in left]
    for top in ours:
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and not left.intersection(path.relative_to(ROOT).parts):
                raw = path.read_bytes()
                if b"\0" not in raw:
                    yield path, raw.decode()


def imports_at_the_top(tree: ast.Module) -> Iterator[str]:
    """Names of what is imported when the module is: all but what stands in functions or under TYPE_CHECKING."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting.extend(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def test_no_module_imports_tensorflow_at_its_top() -> None:
    assert sources()
    at_top = {
        path: {name.split(".")[0] for name in imports_at_the_top(ast.parse(path.read_text()))} for path in sources()
    }
    assert {path.relative_to(ROOT).as_posix() for path, names in at_top.items() if names & TENSORFLOW} == set()


def test_the_parent_is_kept_from_every_module_of_the_worker_except_the_protocol() -> None:
    forbidden = re.findall(r'^    "(bench\.worker\.\w+)",$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    worker = ROOT / "bench" / "worker"
    modules = {path.stem for path in worker.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    modules -= {"__init__", "protocol"}
    assert set(forbidden) == {f"bench.worker.{name}" for name in modules}


@pytest.mark.parametrize("module", ["bench", "bench.cli.app", "bench.config.settings", "bench.registry"])
def test_the_command_lines_process_loads_no_tensorflow(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = set(ran.stdout.split())
    assert "bench" in loaded
    assert loaded & TENSORFLOW == set()


def test_no_file_names_the_host_of_a_package_registry() -> None:
    host = re.compile("|".join(re.escape(".".join(parts)) for parts in HOSTS))
    assert list(found(host)) == []


def test_no_file_holds_a_path_of_a_developers_machine() -> None:
    path = re.compile("|".join(rf"(?<![\w.]){re.escape(f'/{top}/')}{rest}" for top, rest in FOLDERS))
    assert path.search("/".join(["", "home", "me", "devbench"]))
    assert list(found(path)) == []


def found(pattern: re.Pattern[str]) -> Iterator[str]:
    for path, text in texts():
        for number, line in enumerate(text.splitlines(), 1):
            if pattern.search(line):
                yield f"{path.relative_to(ROOT).as_posix()}:{number}: {line.strip()[:100]}"
