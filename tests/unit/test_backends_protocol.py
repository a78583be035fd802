"""The protocol of backends. Every backend defines its names, and no backend imports TensorFlow at module level."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

import bench.backends
from bench.backends import Capabilities, capabilities, hiding_variables, names, reference
from bench.model.check import Check
from bench.model.spec import Data, Spec, Threads

FOLDER = Path(bench.backends.__file__).parent
NAMES = names()


@pytest.fixture(params=NAMES)
def backend(request: pytest.FixtureRequest) -> ModuleType:
    return importlib.import_module(f"bench.backends.{request.param}")


def spec(backend: ModuleType, onednn: bool = True) -> Spec:
    threads = Threads(intra=3, inter=2)
    return Spec(workload="cifar", backend=backend.NAME, threads=threads, onednn=onednn, data=Data(kind="own"))


def test_every_backend_and_the_hub_have_an_extra_a_lock_and_a_dockerfile() -> None:
    root = FOLDER.parents[1]
    project = (root / "pyproject.toml").read_text(encoding="utf-8")
    images = {path.name.partition(".")[2] for path in root.glob("Dockerfile.*")}
    assert images == {*NAMES, "hub"}
    for image in images:
        assert (root / "images" / f"{image}.lock").exists(), image
        assert f"\n{image} = [\n" in project, image


def test_a_backend_describes_itself_and_how_to_install_it(backend: ModuleType) -> None:
    assert backend.DESCRIPTION
    assert backend.PLATFORMS
    assert f"{backend.NAME}.py" == Path(str(backend.__file__)).name


def test_exactly_one_backend_is_the_reference() -> None:
    assert [name for name in NAMES if capabilities(name).reference] == [reference()] == ["cpu"]


def test_an_unknown_backend_in_a_result_counts_as_a_gpu_without_known_capabilities() -> None:
    unknown = capabilities("from-a-newer-release")
    assert unknown == Capabilities()
    assert unknown.gpu
    assert not unknown.reference
    assert unknown.telemetry is None


def test_a_backend_can_be_hidden_by_the_others(backend: ModuleType) -> None:
    assert backend.CAPABILITIES.hide or not backend.CAPABILITIES.gpu
    assert not backend.CAPABILITIES.hide.keys() & backend.environment(spec(backend)).keys()
    assert hiding_variables().items() >= backend.CAPABILITIES.hide.items()


def test_no_code_outside_the_backends_folder_compares_the_name_of_a_backend() -> None:
    comparisons = [
        f"{path.relative_to(FOLDER.parent)}:{node.lineno}"
        for path in FOLDER.parent.rglob("*.py")
        if FOLDER not in path.parents
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare)
        for part in (node.left, *node.comparators)
        for constant in ast.walk(part)
        if isinstance(constant, ast.Constant) and constant.value in NAMES
    ]
    assert comparisons == []


def test_the_checks_of_a_backend_do_not_import_tensorflow_and_never_raise(backend: ModuleType) -> None:
    code = (
        f"import sys; from bench.backends import {backend.NAME} as backend; checks = list(backend.checks());"
        "assert checks; print([name for name in sys.modules if name.split('.')[0] in ('tensorflow', 'keras')])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


def test_every_failed_check_has_a_cause_and_a_fix(backend: ModuleType) -> None:
    for check in backend.checks():
        assert isinstance(check, Check)
        assert check.detail
        assert check.fix or check.status in ("PASS", "SKIP"), check


def test_the_environment_sets_the_threads_and_onednn_of_the_spec(backend: ModuleType) -> None:
    environment = backend.environment(spec(backend))
    assert environment["TF_ENABLE_ONEDNN_OPTS"] == "1"
    assert environment["TF_NUM_INTRAOP_THREADS"] == environment["OMP_NUM_THREADS"] == "3"
    assert environment["TF_NUM_INTEROP_THREADS"] == "2"
    assert backend.environment(spec(backend, onednn=False))["TF_ENABLE_ONEDNN_OPTS"] == "0"


def test_the_cpu_backend_hides_every_accelerator() -> None:
    from bench.backends import cpu

    environment = cpu.environment(spec(importlib.import_module("bench.backends.cpu")))
    assert environment["CUDA_VISIBLE_DEVICES"] == environment["DML_VISIBLE_DEVICES"] == "-1"


@pytest.mark.needs("linux")
def test_without_tensorflow_the_cpu_backend_says_what_to_install(tmp_path: Path) -> None:
    # All packages of this environment except TensorFlow. -S keeps the environment's own folder off the path.
    for entry in Path(sysconfig.get_path("platlib")).iterdir():
        if not entry.name.startswith("tensorflow"):
            (tmp_path / entry.name).symlink_to(entry)
    code = (
        "from bench.backends import cpu\nfrom bench.errors import SettingsError\n"
        "print([check.status for check in cpu.checks()])\n"
        "try: cpu.require()\nexcept SettingsError as error: print(error.exit_code, error.message, error.hint)"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{FOLDER.parents[1]}"}
    process = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert process.stdout.splitlines() == [
        "['FAIL', 'PASS']",
        "2 TensorFlow is not installed In a checkout of devbench, run: pip install '.[cpu]'",
    ]
