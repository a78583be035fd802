"""When the cuda image is built again: whenever one of its inputs changes, and only then."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from images import stamp

pytestmark = pytest.mark.once


@pytest.mark.parametrize("pattern", stamp.INPUTS)
def test_a_changed_input_is_noticed(pattern: str, tmp_path: Path) -> None:
    for path in stamp.inputs():
        copy = tmp_path / path.relative_to(stamp.ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    assert stamp.current(tmp_path) == stamp.current()
    changed = sorted(tmp_path.glob(pattern))
    assert changed
    changed[0].write_text(changed[0].read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert stamp.current(tmp_path) != stamp.current()


def test_what_the_dockerfile_copies_by_name_is_an_input() -> None:
    copied = [
        word
        for line in (stamp.ROOT / "Dockerfile.cuda").read_text(encoding="utf-8").splitlines()
        if line.startswith("COPY images/")
        for word in line.split()[1:-1]
    ]
    assert copied
    assert {stamp.ROOT / name for name in copied} <= set(stamp.inputs())


def test_what_its_look_for_a_device_imports_is_an_input() -> None:
    known = set(stamp.inputs())
    for path in (stamp.ROOT / "bench" / "backends").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "bench":
                package = stamp.ROOT / node.module.replace(".", "/")
                for name in node.names:
                    files = [package / f"{name.name}.py", package.with_suffix(".py"), package / "__init__.py"]
                    module = next(file for file in files if file.exists())
                    assert module in known, f"{path.name} imports {node.module}"
