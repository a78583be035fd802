"""A pytest plugin with the control plane that the tests of the chart share."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from control_plane import ControlPlane

HERE = Path(__file__).parent
CLUSTER = os.environ.get("DEVBENCH_TEST_CLUSTER", "own")  # before conftest.py removes the user's settings
OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
GATEWAY = "sigs.k8s.io/gateway-api@v1.4.0"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip this folder if none of its tests would run, because their imports may be missing."""
    return True if collection_path.is_relative_to(HERE) and config.getoption("-m") == "not once" else None


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with the custom resources of the Prometheus operator and the Gateway API."""
    from control_plane import existing_cluster, run_control_plane

    with existing_cluster() if CLUSTER == "existing" else run_control_plane(tmp_path_factory.mktemp("plane")) as plane:
        for module, folder in (
            (OPERATOR, "example/prometheus-operator-crd"),
            (GATEWAY, "config/crd/standard"),
        ):
            resources = ("podmonitors", "servicemonitors", "prometheusrules", "httproutes")
            for file in sorted((go_module(module) / folder).glob("*.yaml")):
                if any(resource in file.name for resource in resources):
                    plane.kubectl("apply", "--server-side", "-f", str(file))
        yield plane


@pytest.fixture(scope="session")
def clouds(plane: ControlPlane) -> ControlPlane:
    """The control plane, with nodes as three cloud providers label them."""
    from nodes import CLOUDS

    plane.apply(*CLOUDS)
    return plane


@pytest.fixture(scope="session")
def real_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with a real node that has the cpu and hub images."""
    import real_node
    from images.base_images import python_3_13
    from images.engine import build

    from bench.version import __version__

    base = python_3_13(tmp_path_factory.mktemp("base"))
    with TemporaryDirectory(prefix="db") as folder, real_node.run_node(Path(folder)) as plane:
        for backend in ("cpu", "hub"):
            real_node.load(plane, build(backend, base), f"docker.io/library/devbench:{__version__}-{backend}")
        yield plane


def go_module(module: str) -> Path:
    """Return the folder of a Go module. Go downloads it once."""
    completed = subprocess.run(["go", "mod", "download", "-json", module], capture_output=True, text=True, check=True)
    return Path(json.loads(completed.stdout)["Dir"])
