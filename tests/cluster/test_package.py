"""The packaged chart: `make chart` pushes it to a registry, and Helm 3 and Helm 4 pull it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import programs
import pytest
import yaml
from rendering import CHART, HELMS, OFFLINE, ROOT, helm, objects, text

pytestmark = [pytest.mark.once, pytest.mark.needs("go"), pytest.mark.timeout(900)]

MAKE = ("make", "-f", str(ROOT / "Makefile"), "-C")
VERSION = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))["version"]


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    """The address of a registry on loopback, without TLS."""
    words = [str(programs.tool("crane")), "registry", "serve", "--address", "127.0.0.1:0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        yield f"oci://127.0.0.1:{process.stderr.readline().split()[-1]}"
        process.terminate()


@pytest.mark.parametrize("program", HELMS)
def test_a_pushed_chart_renders_the_same_objects_as_the_source_tree(
    program: str, registry: str, tmp_path: Path
) -> None:
    (tmp_path / "helm").symlink_to(programs.tool(program))
    shutil.copytree(CHART, tmp_path / "charts" / "devbench")
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    repository = f"{registry}/{program}"
    words = [*MAKE, str(tmp_path), "chart", f"OCI={repository}", "OCI_OPTIONS=--plain-http"]
    completed = subprocess.run(words, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    assert f"devbench:{VERSION}" in completed.stdout + completed.stderr

    pulled = tmp_path / "pulled"
    pulled.mkdir()
    options = ("--plain-http", "--version", VERSION)
    helm(program, "pull", f"{repository}/devbench", *options, "--untar", "--untardir", str(pulled))
    files = {path.relative_to(pulled) for path in pulled.rglob("*") if path.is_file()}
    assert Path("devbench/values.schema.json") in files
    assert Path("devbench/dashboards") in {file.parent for file in files}
    for case in OFFLINE:
        manifests = text(case, program=program, chart=pulled / "devbench")
        assert objects(manifests) == objects(text(case, program=program))


def test_make_chart_without_helm_explains_how_to_install_it(tmp_path: Path) -> None:
    (tmp_path / "make").symlink_to(str(shutil.which("make")))
    (tmp_path / "sh").symlink_to("/bin/sh")
    words = [*MAKE, str(tmp_path), "chart"]
    completed = subprocess.run(words, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert completed.returncode == 2
    assert "go install helm.sh/helm/v4" in completed.stderr
