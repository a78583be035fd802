"""A program at another commit imports the modules of that commit, wherever an installation says they are."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from git_repository import GitRepository

from bench.registry.own_modules import BENCH, import_from_copy, import_from_own_checkout

FILES = {"train.py": "", "src/mine/__init__.py": ""}


@pytest.fixture
def checkouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return the folders of a checkout and of another worktree of its repository."""
    made = GitRepository(tmp_path / "project")
    made.commit({**FILES, "old/gone.py": ""})
    made.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "base"))
    (tmp_path / "base" / "old" / "gone.py").unlink()
    (tmp_path / "base" / "old").rmdir()
    monkeypatch.setattr(sys, "path", [*sys.path])
    return made.folder, tmp_path / "base"


def test_paths_of_another_checkout_become_those_of_the_programs_own(
    checkouts: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    current, base = checkouts
    sys.path[:] = ["", str(current / "src"), str(tmp_path), str(current / "old"), str(BENCH.parent)]
    monkeypatch.setenv("PYTHONPATH", str(current / "src"))
    import_from_own_checkout(base / "train.py")
    assert sys.path == ["", str(base / "src"), str(tmp_path), str(BENCH.parent)]
    assert os.environ["PYTHONPATH"] == str(base / "src")


def test_an_editable_installation_of_another_checkout_becomes_one_of_the_copy(
    checkouts: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    current, base = checkouts
    copy = tmp_path / "copy"
    package = copy / (base / "src" / "mine").relative_to(base.anchor)
    package.mkdir(parents=True)
    finder = ModuleType("__editable___mine_1_0_finder")
    finder.MAPPING = {"mine": str(current / "src" / "mine"), "gone": str(current / "old")}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, finder.__name__, finder)
    import_from_own_checkout(base / "train.py", copy)
    assert {"mine": str(package)} == finder.MAPPING


def test_a_checkout_of_another_project_stays_as_it_is(checkouts: tuple[Path, Path], tmp_path: Path) -> None:
    library = GitRepository(tmp_path / "library")
    library.commit({"src/library.py": ""})
    sys.path[:] = [str(library.folder / "src")]
    import_from_own_checkout(checkouts[1] / "train.py")
    assert sys.path == [str(library.folder / "src")]


def test_modules_below_the_folder_of_an_installation_are_imported_from_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, copy = tmp_path / "usr" / "src" / "app", tmp_path / "copy"
    for root in (folder, copy / folder.relative_to("/")):
        (root / "mine").mkdir(parents=True)
    for name in ("prefix", "base_prefix", "exec_prefix"):
        monkeypatch.setattr(sys, name, str(tmp_path / "usr"))
    monkeypatch.setattr(sys, "path", [str(folder)])
    import_from_copy(Path("/"), copy, [folder])
    assert sys.path == [str(copy / folder.relative_to("/"))]


def test_modules_of_the_folder_of_a_script_are_imported_from_its_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, copy = tmp_path / "project", tmp_path / "copy"
    for root in (folder, copy):
        (root / "src" / "mine").mkdir(parents=True)
    (folder / ".venv" / "site-packages").mkdir(parents=True)
    (copy / ".venv").symlink_to(folder / ".venv")
    (copy / "env" / "lib").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(folder / "env"))  # an installation that is copied with the folder
    finder = ModuleType("__editable___mine_1_0_finder")
    finder.MAPPING = {"mine": str(folder / "src" / "mine"), "other": "/elsewhere"}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, finder.__name__, finder)
    same = [str(folder / ".venv" / "site-packages"), str(folder / "env" / "lib"), str(folder / "gone"), str(tmp_path)]
    monkeypatch.setattr(sys, "path", ["", str(folder / "src"), *same, str(BENCH.parent)])
    monkeypatch.setenv("PYTHONPATH", str(folder))
    import_from_copy(folder, copy, [folder])
    assert sys.path == ["", str(copy / "src"), *same, str(BENCH.parent)]
    assert os.environ["PYTHONPATH"] == str(copy)
    assert {"mine": str(copy / "src" / "mine"), "other": "/elsewhere"} == finder.MAPPING
