"""A script leaves its own folder as it was, and runs with what it needs."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from devbench_process import run_devbench

from bench.config.settings import RunSettings
from bench.errors import SettingsError
from bench.session import folder_copy
from bench.session.script_folder import ScriptFolder
from bench.study.plan import plan

PROGRAMS = Path(__file__).parent / "programs"
BRIEF = ("--max-processes", "2", "--max-time", "5s")


def contents(folder: Path) -> dict[str, str]:
    """Return the files in a folder, without devbench's results and outputs."""
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and "results" not in path.parts and path.name not in ("out", "err")
    }


@pytest.mark.essential
@pytest.mark.timeout(600)
def test_checkpoints_and_logs_of_a_script_do_not_reach_its_folder(tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / "fit_files.py", tmp_path)
    (tmp_path / "log.csv").write_text("a log of an earlier run\n")
    before = contents(tmp_path)
    run = run_devbench(tmp_path, "run", "fit_files.py", *BRIEF)
    assert run.code == 0, run.text()
    assert contents(tmp_path) == before
    assert "fit_files.py runs several times, each time in a new copy of" in run.err
    (result,) = run.results
    assert result.recognition is not None
    assert (result.status, result.recognition.chosen.steps) == ("complete", 64)
    assert result.summary.step_seconds is not None
    assert {"import", "build", "trace", "first_step", "validation", "epoch_end"} <= result.summary.phases.keys()
    assert result.placement is not None
    assert result.placement.verified


LOADS = """
import multiprocessing, pathlib, time
import tensorflow as tf

def load(pids):
    with open(pids, "a") as file:
        file.write(f"{multiprocessing.current_process().pid}\\n")
    time.sleep(600)

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    context.Process(target=load, args=(%r,), daemon=True).start()
    step = tf.function(lambda x: x + 1)
    for _ in range(100_000):
        step(tf.zeros(3))
"""


def _process(pid: str) -> psutil.Process | None:
    try:
        return psutil.Process(int(pid))
    except psutil.NoSuchProcess:
        return None


@pytest.mark.once
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
@pytest.mark.timeout(600)
def test_no_process_that_a_script_started_outlives_the_run(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    (tmp_path / "loads.py").write_text(LOADS % str(pids))
    run = run_devbench(tmp_path, "run", "loads.py", *BRIEF)
    assert run.code == 0, run.text()
    started = pids.read_text().split()
    assert len(started) >= 2
    assert [process for process in map(_process, started) if process and process.status() != psutil.STATUS_ZOMBIE] == []


@pytest.mark.once
def test_what_cannot_be_read_is_left_out_of_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    (project / "lost+found").mkdir(parents=True)
    (project / "train.py").write_text("print(1)")
    (group,) = plan([project / "train.py"], RunSettings())
    scandir = os.scandir

    def refusing(folder: Path) -> Any:
        if Path(folder).name == "lost+found":
            raise PermissionError(13, "Permission denied", str(folder))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    found = ScriptFolder.of(group.planned[0].spec, None, tmp_path / "results")
    file, _ = found.prepare(tmp_path / "scratch")
    assert file.read_text() == "print(1)"


@pytest.mark.once
@pytest.mark.timeout(600)
def test_a_script_runs_in_a_folder_that_the_user_chose(tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / "fit_files.py", tmp_path)
    chosen = tmp_path / "chosen"
    chosen.mkdir()
    run = run_devbench(tmp_path, "run", "fit_files.py", "--workdir", str(chosen), *BRIEF)
    assert run.code == 0, run.text()
    assert (chosen / "log.csv").exists()
    assert not (tmp_path / "log.csv").exists()


@pytest.mark.once
@pytest.mark.timeout(600)
def test_a_script_gets_its_arguments_and_a_module_runs_as_a_script(tmp_path: Path) -> None:
    shutil.copytree(PROGRAMS / "data", tmp_path / "data")
    shutil.copytree(PROGRAMS / "helper", tmp_path / "helper")
    shutil.copy(PROGRAMS / "environment.py", tmp_path)
    refused = run_devbench(tmp_path, "run", "environment.py", "--max-processes", "1", "--", "--wrong")
    assert refused.code == 2
    assert "environment.py: error: " in refused.text()
    assert "required: --epochs" in refused.text()
    run = run_devbench(tmp_path, "run", "-m", "environment", *BRIEF, "--", "--epochs", "2")
    assert run.code == 0, run.text()
    result = run.results[-1]
    assert result.spec.script is not None
    assert result.spec.script.arguments == ("--epochs", "2")
    printed = result.samples[0].printed
    assert printed is not None
    assert printed.first[0] == "training ['--epochs', '2']"


@pytest.mark.once
def test_a_copy_has_its_parents_and_not_the_results(tmp_path: Path) -> None:
    project, scratch = tmp_path / "project", tmp_path / "scratch"
    (project / "results").mkdir(parents=True)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.csv").write_text("1")
    (project / "train.py").write_text("print(1)")
    file, folder = ScriptFolder(project / "train.py", project, True, project / "results").prepare(scratch)
    assert file.read_text() == "print(1)"
    assert (folder / ".." / "data" / "x.csv").read_text() == "1"
    assert not (folder / "results").exists()


@pytest.mark.once
def test_what_is_too_large_to_copy_is_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_copy, "LIMIT_FILES", 6)
    monkeypatch.setattr(folder_copy, "LIMIT_BYTES", 100)
    project = tmp_path / "project"
    sizes = {"sub/train.py": 1, "sub/big.bin": 101, "sub/model/a": 60, "sub/model/b": 30, "c": 20, "many/d": 1}
    sizes |= {f"many/deep/{number}": 0 for number in range(7)}
    for name, size in sizes.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_bytes(b"x" * size)
    (group,) = plan([project / "sub" / "train.py"], RunSettings())
    monkeypatch.chdir(project)
    found = ScriptFolder.of(group.planned[0].spec, None, project / "results")
    assert found.root == project
    linked = {path.relative_to(project).as_posix() for path in found.large}
    assert linked == {"sub/big.bin", "sub/model", "many/deep"}
    assert (found.files, found.size) == (3, 22)
    assert "Too large to copy: " in found.announcement
    assert "many/deep" in found.announcement
    _, copy = found.prepare(tmp_path / "scratch")
    assert {path.name for path in (copy / "sub" / "model").iterdir() if path.is_symlink()} == {"a", "b"}
    assert {name for name in linked if (copy / name).is_symlink()} == {"sub/big.bin", "many/deep"}
    (copy / "sub" / "model" / "new").write_text("written by the script")
    assert not (project / "sub" / "model" / "new").exists()
    assert all((copy / name).stat().st_size == size for name, size in sizes.items())
    assert not (copy / "many").is_symlink()


@pytest.mark.once
def test_a_folder_of_checkpoints_is_not_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(folder_copy, "LIMIT_BYTES", 100)
    (tmp_path / "train.py").write_text("print(1)")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "best.keras").write_bytes(b"x" * 60)
    (tmp_path / "data.npz").write_bytes(b"x" * 50)
    (group,) = plan([tmp_path / "train.py"], RunSettings())
    found = ScriptFolder.of(group.planned[0].spec, None, tmp_path / "results")
    assert [path.name for path in found.large] == ["data.npz"]  # although the other one is larger
    (tmp_path / "runs" / "best.keras").write_bytes(b"x" * 101)
    with pytest.raises(SettingsError, match=r"the script may overwrite best\.keras in it") as raised:
        ScriptFolder.of(group.planned[0].spec, None, tmp_path / "results")
    assert "--workdir" in raised.value.hint


@pytest.mark.once
def test_a_script_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print(1)")
    (group,) = plan([tmp_path / "train.py"], RunSettings())
    monkeypatch.setattr(folder_copy, "LIMIT_BYTES", 4)
    with pytest.raises(SettingsError, match="too large to copy") as raised:
        ScriptFolder.of(group.planned[0].spec, None, tmp_path / "results")
    assert "--workdir" in raised.value.hint
