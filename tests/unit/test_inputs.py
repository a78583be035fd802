"""Groups of slow tests run again if one of their inputs changed."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import inputs
import pytest

pytestmark = pytest.mark.once

IMAGES = pytest.mark.parametrize("image", ["cuda", "directml"])
COMMANDS = ("run", "sweep", "explain", "compare", "list", "doctor")
"""Commands that the tests of the groups of runs execute."""


@pytest.mark.parametrize("group", inputs.GROUPS)
def test_a_changed_input_changes_the_hash_of_its_group(group: str, tmp_path: Path) -> None:
    for path in inputs.inputs(group):
        copy = tmp_path / path.relative_to(inputs.ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)

    def digest(test: Path) -> str:
        inputs.digest.cache_clear()
        return inputs.digest(group, test, tmp_path)

    (test, *others) = filter(inputs.is_test, inputs.inputs(group, tmp_path))
    assert digest(test) == inputs.digest(group, inputs.ROOT / test.relative_to(tmp_path))
    for pattern in inputs.GROUPS[group]:
        if not pattern.startswith("!"):
            path = min(set(tmp_path.glob(pattern)) & set(inputs.inputs(group, tmp_path)))
            reader = path if inputs.is_test(path) else test
            before = digest(reader)
            path.write_bytes(path.read_bytes() + b"\n")
            assert digest(reader) != before, pattern
    if others:
        before = digest(test)
        others[-1].write_bytes(others[-1].read_bytes() + b"\n")
        assert digest(test) == before


def test_every_exclusion_excludes_a_file() -> None:
    for group, patterns in inputs.GROUPS.items():
        included = {path for pattern in patterns for path in inputs.ROOT.glob(pattern)}
        for pattern in patterns:
            if pattern.startswith("!"):
                assert included & set(inputs.ROOT.glob(pattern[1:])), (group, pattern)


@pytest.mark.parametrize("group", ["programs", "prometheus", "quiet", "scripts", "workers"])
def test_modules_that_a_run_imports_are_inputs(group: str) -> None:
    import grimp  # the environment with TensorFlow 2.10 lacks it

    graph = grimp.build_graph("bench")
    entries = {"bench.__main__", "bench.api", "bench.worker.main", *(f"bench.cli.{name}" for name in COMMANDS)}
    modules = entries.union(*map(graph.find_upstream_modules, entries))
    files = {path.relative_to(inputs.ROOT).as_posix() for path in inputs.inputs(group)}
    for module in modules:
        path = module.replace(".", "/")
        assert files & {f"{path}.py", f"{path}/__init__.py"}, module


@pytest.fixture
def _recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A hundred files of a long group passed ten days ago, with other inputs than now. Another one passed yesterday."""
    monkeypatch.setattr(inputs, "ROOT", tmp_path)
    monkeypatch.setattr(inputs, "PASSED", tmp_path)
    monkeypatch.setattr(inputs, "digest", lambda group, test: "now")
    lines = []
    for number in range(101):
        test = tmp_path / f"test_{number}.py"
        test.write_text("")
        day = date.today() - timedelta(days=10 if number < 100 else 1)
        lines.append(f"{test.name} {day} {inputs.content(test)} before\n")
    (tmp_path / "scripts").write_text("".join(lines))
    inputs.last_passed.cache_clear()
    yield
    inputs.last_passed.cache_clear()


def _run(days: int) -> set[int]:
    return {n for n in range(101) if not inputs.deferred("scripts", inputs.ROOT / f"test_{n}.py", days)}


@pytest.mark.usefixtures("_recorded")
def test_a_few_of_the_files_that_passed_too_long_ago_run_each_day() -> None:
    assert len(_run(7)) < 25
    assert 100 not in _run(7)
    assert len(_run(0)) == 101


@pytest.mark.usefixtures("_recorded")
def test_each_file_that_passed_too_long_ago_has_a_day() -> None:
    period = [date.today() + timedelta(days=number) for number in range(inputs.PERIOD)]
    for number in range(100):
        test = inputs.ROOT / f"test_{number}.py"
        assert [inputs.has_turn("scripts", test, day) for day in period].count(True) == 1


@pytest.mark.usefixtures("_recorded")
def test_an_edited_file_of_a_long_group_runs_at_once() -> None:
    edited = inputs.ROOT / "test_100.py"
    assert inputs.deferred("scripts", edited, 7)
    edited.write_text("import this\n")
    assert not inputs.deferred("scripts", edited, 7)


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
