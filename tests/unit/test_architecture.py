"""Rules for all files of the project. import-linter checks which folder may import which."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
TENSORFLOW = {"tensorflow", "keras", "tensorflow_directml_plugin"}
# In pieces, so that this file does not contain the names that it forbids.
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
    """Yield every text file of the project. Files that tools and runs create start with a dot or are in `generated`."""
    roots = [ROOT / ".ci", ROOT / ".gitignore"]
    generated = {"results", "dist", "__pycache__"}
    roots += [path for path in ROOT.iterdir() if not path.name.startswith(".") and path.name not in generated]
    for root in roots:
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if path.is_file() and not generated.intersection(path.relative_to(ROOT).parts):
                raw = path.read_bytes()
                if b"\0" not in raw:
                    yield path, raw.decode()


def imports_at_the_top(tree: ast.Module) -> Iterator[str]:
    """Yield the modules that importing a module imports, without those in functions or under TYPE_CHECKING."""
    nodes: list[ast.AST] = list(tree.body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            nodes.extend(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            nodes.extend(ast.iter_child_nodes(node))


def test_no_module_imports_tensorflow_at_module_level() -> None:
    assert sources()
    imports = {
        path: {name.split(".")[0] for name in imports_at_the_top(ast.parse(path.read_text()))} for path in sources()
    }
    assert {path.relative_to(ROOT).as_posix() for path, names in imports.items() if names & TENSORFLOW} == set()


def test_the_parent_may_import_no_module_of_the_worker_except_the_protocols() -> None:
    forbidden = re.findall(r'^    "(bench\.worker\.\w+)",$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    worker = ROOT / "bench" / "worker"
    modules = {path.stem for path in worker.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    modules -= {"__init__", "protocol", "rendezvous"}
    assert set(forbidden) == {f"bench.worker.{name}" for name in modules}


def test_the_name_of_a_class_or_of_a_type_has_one_meaning() -> None:
    """A workload's parameters are an exception: the protocol of workloads names their class."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in sources():
        for name in class_names(ast.parse(path.read_text())):
            if (path.parent.name, name) != ("workloads", "Params"):
                places[name.lstrip("_")].append(path.relative_to(ROOT).as_posix())
    assert len(places) > 200
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def class_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names of a module's classes, including nested ones, and of its type aliases, such as `Pair`."""
    yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            if isinstance(target, ast.Name) and re.match(r"_?[A-Z][a-z]", target.id):
                yield target.id


@pytest.mark.parametrize("module", ["bench", "bench.cli.app", "bench.config.settings", "bench.registry"])
def test_the_command_line_does_not_load_tensorflow(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    process = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = set(process.stdout.split())
    assert "bench" in loaded
    assert loaded & TENSORFLOW == set()


def test_no_file_contains_the_host_of_a_package_registry() -> None:
    host = re.compile("|".join(re.escape(".".join(parts)) for parts in HOSTS))
    assert list(matches(host)) == []


def test_no_file_contains_a_path_of_a_developers_machine() -> None:
    path = re.compile("|".join(rf"(?<![\w.]){re.escape(f'/{top}/')}{suffix}" for top, suffix in FOLDERS))
    assert path.search("/".join(["", "home", "me", "devbench"]))
    assert list(matches(path)) == []


def matches(pattern: re.Pattern[str]) -> Iterator[str]:
    for path, text in texts():
        for number, line in enumerate(text.splitlines(), 1):
            if pattern.search(line):
                yield f"{path.relative_to(ROOT).as_posix()}:{number}: {line.strip()[:100]}"
