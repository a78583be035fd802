"""Where a script runs: in a copy that reads what the original reads, and through which it writes to nothing else."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.config.settings import RunSettings
from bench.model.spec import Script, Spec
from bench.session import folder_copy, script_folder
from bench.session.script_folder import ScriptFolder
from bench.study.plan import spec_of_settings

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("links")]


@pytest.fixture
def links(tmp_path: Path) -> None:
    """Skip the test if this user may not make links."""
    try:
        (tmp_path / "a-link").symlink_to(tmp_path)
    except OSError:
        pytest.skip("this system allows links only to some users")
    (tmp_path / "a-link").unlink()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a script."""
    folder = tmp_path / "home" / "project"
    write(folder, {"train.py": "print(1)"})
    monkeypatch.chdir(folder)
    return folder


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def spec(file: Path, module: str | None = None) -> Spec:
    script = Script(module=module)
    return spec_of_settings("train", RunSettings()).model_copy(update={"file": str(file), "script": script})


def prepared(file: Path, scratch: Path, module: str | None = None) -> tuple[Path, Path]:
    """Return the script and its working folder in a new copy."""
    scratch.mkdir(parents=True)
    return ScriptFolder.of(spec(file, module), None, file.parent / "results").prepare(scratch)


def test_a_script_does_not_write_through_the_links_in_its_folder(project: Path, tmp_path: Path) -> None:
    write(tmp_path / "disk", {"runs/best.keras": "mine", "rows.csv": "1"})
    write(project, {"sub/deep.txt": "mine"})
    (project / "runs").symlink_to(tmp_path / "disk" / "runs")
    (project / "rows.csv").symlink_to(tmp_path / "disk" / "rows.csv")
    (project / "latest").symlink_to(project / "sub")
    _, working = prepared(project / "train.py", tmp_path / "scratch")
    for name in ("runs/best.keras", "rows.csv", "latest/deep.txt"):
        assert (working / name).read_text() in ("mine", "1")
        (working / name).write_text("changed")
    (working / "runs" / "new.txt").write_text("new")
    assert (working / "sub" / "deep.txt").read_text() == "changed"
    assert (project / "sub" / "deep.txt").read_text() == "mine"
    assert {path.name: path.read_text() for path in (tmp_path / "disk").rglob("*") if path.is_file()} == {
        "best.keras": "mine",
        "rows.csv": "1",
    }


def test_links_to_one_place_have_one_copy(project: Path, tmp_path: Path) -> None:
    write(tmp_path / "disk", {"7/log.txt": "old"})
    for name in ("runs", "latest"):
        (project / name).symlink_to(tmp_path / "disk" / "7")
    (project / "sink").symlink_to("/dev/null")
    _, working = prepared(project / "train.py", tmp_path / "scratch")
    (working / "latest" / "log.txt").write_text("new")
    assert (working / "runs" / "log.txt").read_text() == "new"
    assert (tmp_path / "disk" / "7" / "log.txt").read_text() == "old"
    assert (working / "sink").resolve() == Path("/dev/null")


def test_links_that_lead_around_end_the_copy_where_they_meet_it(project: Path, tmp_path: Path) -> None:
    write(tmp_path / "disk", {"data/rows.csv": "1"})
    (project / "up").symlink_to(project.parent)
    (project / "disk").symlink_to(tmp_path / "disk")
    (tmp_path / "disk" / "data" / "again").symlink_to(tmp_path / "disk")
    (tmp_path / "disk" / "back").symlink_to(project)
    (project / "gone").symlink_to(project / "nothing")
    _, working = prepared(project / "train.py", tmp_path / "scratch")
    assert (working / "up" / "project" / "train.py").resolve() == working / "train.py"
    assert (working / "disk" / "back" / "train.py").resolve() == working / "train.py"
    assert (working / "disk" / "data" / "again" / "data" / "rows.csv").read_text() == "1"


def test_a_link_to_what_this_user_may_not_see_stays_a_link(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = tmp_path / "hidden" / "data"
    (project / "data").symlink_to(hidden)
    stat = Path.stat

    def refusing(path: Path, **options: bool) -> os.stat_result:
        if path == hidden:
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", refusing)
    _, working = prepared(project / "train.py", tmp_path / "scratch")
    assert (working / "data").readlink() == hidden


def test_files_below_a_linked_folder_that_is_too_large_are_found(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_copy, "LIMIT_BYTES", 100)
    write(tmp_path / "disk", {"images/a.png": "x" * 60, "images/b.png": "x" * 60})
    write(project, {"data/labels.csv": "y" * 10})
    (project / "data" / "images").symlink_to(tmp_path / "disk" / "images")
    folder = ScriptFolder.of(spec(project / "train.py"), None, project / "results")
    assert folder.large == (project / "data" / "images",)
    _, working = folder.prepare(tmp_path / "scratch")
    assert (working / "data" / "images" / "a.png").read_text() == "x" * 60
    (working / "data" / "images" / "new.png").write_text("new")
    assert not (tmp_path / "disk" / "images" / "new.png").exists()
    (tmp_path / "disk" / "images" / "best.keras").write_text("mine")
    with pytest.raises(Exception, match=r"may overwrite best\.keras"):
        ScriptFolder.of(spec(project / "train.py"), None, project / "results")


def test_a_script_in_the_folder_for_temporary_files_is_copied_without_the_copies(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "linked").symlink_to(project)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "linked"))
    file, working = prepared(project / "train.py", tmp_path / "linked" / "devbench-1" / "script")
    assert file.read_text() == "print(1)"
    assert [path.name for path in working.iterdir()] == ["train.py"]


def test_hidden_folders_of_the_home_folder_are_not_copied(project: Path, tmp_path: Path) -> None:
    write(project, {".cache/models/best.keras": "mine", "rows.csv": "1"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder_copy, "home", lambda: project)
        _, working = prepared(project / "train.py", tmp_path / "scratch")
    assert (working / ".cache").is_symlink()
    assert not (working / "rows.csv").is_symlink()


def test_a_script_outside_the_current_folder_finds_the_files_of_both(project: Path, tmp_path: Path) -> None:
    write(tmp_path / "other", {"code/train.py": "print(2)", "code/helper.py": "", "data/rows.csv": "2"})
    write(project, {"rows.csv": "1"})
    file, working = prepared(tmp_path / "other" / "code" / "train.py", tmp_path / "scratch")
    assert (file.read_text(), (file.parent / "helper.py").exists()) == ("print(2)", True)
    assert (working / "rows.csv").read_text() == "1"
    assert (file.parent.parent / "data" / "rows.csv").read_text() == "2"
    (working / "rows.csv").write_text("changed")
    (file.parent / "helper.py").write_text("changed")
    assert (project / "rows.csv").read_text() == "1"
    assert (tmp_path / "other" / "code" / "helper.py").read_text() == ""


@pytest.mark.parametrize("shared", ["temporary", "home"])
def test_a_script_outside_a_folder_that_is_no_project_runs_in_its_own(
    shared: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "other", {"train.py": "print(2)", "rows.csv": "2"})
    if shared == "home":
        monkeypatch.setattr(script_folder, "home", lambda: project)
    else:
        monkeypatch.setattr(tempfile, "tempdir", str(project))
    file, working = prepared(tmp_path / "other" / "train.py", tmp_path / "scratch")
    assert working == file.parent
    assert (working / "rows.csv").read_text() == "2"


def test_a_script_above_the_current_folder_runs_in_the_current_one(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, {"data/rows.csv": "1"})
    monkeypatch.chdir(project / "data")
    file, working = prepared(project / "train.py", tmp_path / "scratch")
    assert working == file.parent / "data"


def test_a_notebook_runs_in_its_own_folder(project: Path, tmp_path: Path) -> None:
    write(project, {"notebooks/train.ipynb": "{}", "data/rows.csv": "1"})
    file, working = prepared(project / "notebooks" / "train.ipynb", tmp_path / "scratch")
    assert working == file.parent
    (working / ".." / "data" / "rows.csv").write_text("changed")
    assert (project / "data" / "rows.csv").read_text() == "1"


def test_an_installed_module_runs_where_it_is_in_a_copy_of_the_current_folder(project: Path, tmp_path: Path) -> None:
    write(tmp_path / "site-packages", {"package/train.py": "print(3)"})
    installed = tmp_path / "site-packages" / "package" / "train.py"
    file, working = prepared(installed, tmp_path / "scratch", "package.train")
    assert file == installed
    assert (working / "train.py").read_text() == "print(1)"
    assert working != project
