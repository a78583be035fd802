"""Groups of slow tests run again if one of their inputs changed."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import inputs
import pytest

pytestmark = pytest.mark.once

PATTERNS = [(group, pattern) for group, patterns in inputs.GROUPS.items() for pattern in patterns]
IMAGES = pytest.mark.parametrize("image", ["cuda", "directml"])


@pytest.mark.parametrize(("group", "pattern"), PATTERNS)
def test_a_changed_input_changes_the_hash_of_its_group(group: str, pattern: str, tmp_path: Path) -> None:
    for path in inputs.inputs(group):
        copy = tmp_path / path.relative_to(inputs.ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    assert inputs.digest(group, tmp_path) == inputs.digest(group)
    path, *_ = sorted(tmp_path.glob(pattern))
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert inputs.digest(group, tmp_path) != inputs.digest(group)


def test_every_recorded_group_exists() -> None:
    assert {path.name for path in inputs.PASSED.iterdir()} <= set(inputs.GROUPS)


@IMAGES
def test_scripts_that_the_dockerfile_copies_are_inputs(image: str) -> None:
    scripts = [
        word
        for line in (inputs.ROOT / f"Dockerfile.{image}").read_text(encoding="utf-8").splitlines()
        if line.startswith("COPY images/")
        for word in line.split()[1:-1]
    ]
    assert scripts
    assert {inputs.ROOT / name for name in scripts} <= set(inputs.inputs(f"{image}-image"))


@IMAGES
def test_modules_that_a_backend_imports_are_inputs(image: str) -> None:
    files = set(inputs.inputs(f"{image}-image"))
    for path in (inputs.ROOT / "bench" / "backends").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "bench":
                package = inputs.ROOT / node.module.replace(".", "/")
                for name in node.names:
                    candidates = [package / f"{name.name}.py", package.with_suffix(".py"), package / "__init__.py"]
                    module = next(file for file in candidates if file.exists())
                    assert module in files, f"{path.name} imports {node.module}"
