"""Which source files are a script's, and the names that they have in every process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from bench.worker.script.calls import Observation, in_script

pytestmark = pytest.mark.once


def seen(file: Path, folder: Path) -> Observation:
    sink: Any = None
    return Observation(tf=None, sink=sink, program=in_script(file, folder), roots=(folder, file.parent))


def test_files_have_the_same_names_in_each_copy_although_the_script_is_outside_its_working_folder() -> None:
    for scratch in map(Path, ("/scratch/1", "/scratch/2")):
        observed = seen(scratch / "other" / "train.py", scratch / "project")
        assert observed.name_of(str(scratch / "other" / "train.py")) == "train.py"
        assert observed.name_of(str(scratch / "other" / "parts" / "model.py")) == "parts/model.py"
        assert observed.name_of(str(scratch / "project" / "model.py")) == "model.py"
        assert observed.name_of(str(scratch / "elsewhere" / "model.py")) == ""


def test_the_modules_beside_an_installed_one_are_the_scripts_if_it_runs() -> None:
    package = Path("/usr/lib/python3/site-packages/package")
    observed = seen(package / "train.py", Path("/project"))
    assert observed.name_of(str(package / "model.py")) == "model.py"
    assert observed.name_of(str(package.parent / "other" / "model.py")) == ""


def test_a_module_without_a_package_is_alone_in_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = Path("/usr/lib/python3/site-packages")
    monkeypatch.setattr(sys, "path", [str(installed)])
    observed = seen(installed / "train.py", Path("/project"))
    assert observed.name_of(str(installed / "train.py")) == "train.py"
    assert observed.name_of(str(installed / "keras" / "model.py")) == ""
