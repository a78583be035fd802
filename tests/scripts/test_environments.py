"""A script in several Python environments, interleaved."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from devbench_process import run_devbench

from bench.machine.installed import tensorflow, tensorflow_version

pytestmark = [pytest.mark.once, pytest.mark.timeout(900)]

PROGRAMS = Path(__file__).parent / "programs"
BRIEF = ("--max-processes", "1", "--max-time", "30s")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return an environment with the packages of this one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "copy")], check=True)
    (site,) = (tmp_path / "copy").glob("lib/python*/site-packages")
    (own,) = {path for path in map(Path, sys.path) if path.name == "site-packages"}
    (site / "own.pth").write_text(f"{own}\n")
    return tmp_path / "copy"


@pytest.mark.needs("tensorflow-2.10")
def test_two_versions_of_tensorflow_are_measured_in_one_run(copy: Path, directml_python: Path, tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / "fit_arrays.py", tmp_path)
    envs = ("--env", f"new={copy}", "--env", f"old={directml_python}")
    run = run_devbench(tmp_path, "run", "fit_arrays.py", *envs, *BRIEF)
    assert run.code == 0, run.text()
    new, old = run.results
    for result, name in ((new, "new"), (old, "old")):
        assert result.status == "complete", result.failure
        assert result.interleaved
        assert result.spec.env is not None
        assert result.spec.env.name == name
        assert result.environment is not None
        assert (result.environment.tensorflow or "").startswith("2.10") == (name == "old")
    assert new.spec.env is not None
    assert old.spec.env is not None
    assert "pydantic" in new.spec.env.packages
    assert "differs: packages: " in run.text()
    assert "differs: TensorFlow: 2." in run.text()


def test_a_worker_that_imports_another_tensorflow_than_its_environment_names_fails(copy: Path, tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / "fit_arrays.py", tmp_path)
    (site,) = copy.glob("lib/python*/site-packages")
    name, installed = tensorflow() or ("", "")
    info = site / f"{name.replace('-', '_')}-2.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.1.0\n")
    run = run_devbench(tmp_path, "run", "fit_arrays.py", "--env", f"copy={copy}", *BRIEF)
    assert run.code == 1, run.text()
    (result,) = run.results
    assert result.failure is not None
    assert result.failure.message == (f"the environment copy has TensorFlow 2.1.0, but its worker imported {installed}")


def test_an_environment_is_checked_by_doctor(copy: Path, tmp_path: Path) -> None:
    run = run_devbench(tmp_path, "doctor", "--backend", "cpu", "--env", f"copy={copy}", "--env", f"no={tmp_path}")
    assert run.code != 0
    assert "environment copy" in run.text()
    assert "imported: TensorFlow 2." in run.text()
    assert "is not a Python environment" in run.text()


def test_an_environment_is_made_of_requirements_and_used_again(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shutil.copy(PROGRAMS / "fit_arrays.py", tmp_path)
    cache = tmp_path_factory.mktemp("cache")
    version = tensorflow_version()
    wanted = f"tensorflow=={version}"
    run = run_devbench(tmp_path, "run", "fit_arrays.py", "--with", wanted, *BRIEF, XDG_CACHE_HOME=str(cache))
    assert run.code == 0, run.text()
    (result,) = run.results
    assert result.spec.env is not None
    assert result.spec.env.packages["tensorflow"] == version
    assert "devbench-tf" not in result.spec.env.packages
    (made,) = (cache / "devbench" / "environments").iterdir()
    before = made.stat().st_mtime_ns
    run = run_devbench(tmp_path, "run", "fit_arrays.py", "--with", wanted, *BRIEF, XDG_CACHE_HOME=str(cache))
    assert run.code == 0, run.text()
    assert made.stat().st_mtime_ns == before
