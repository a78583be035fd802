"""The control plane that the tests of the chart share, as a plugin, with the resources of others that it must know."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from plane import Plane

HERE = Path(__file__).parent
CLUSTER = os.environ.get("DEVBENCH_TEST_CLUSTER", "own")  # before the suite takes the user's settings away
OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
GATEWAY = "sigs.k8s.io/gateway-api@v1.4.0"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Passes this folder over where none of its tests would run, nor what they import be there."""
    return True if collection_path.is_relative_to(HERE) and config.getoption("-m") == "not once" else None


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane with the resources of the Prometheus operator and the Gateway API."""
    from plane import existing, started

    with existing() if CLUSTER == "existing" else started(tmp_path_factory.mktemp("plane")) as made:
        for module, folder in (
            (OPERATOR, "example/prometheus-operator-crd"),
            (GATEWAY, "config/crd/standard"),
        ):
            wanted = ("podmonitors", "servicemonitors", "prometheusrules", "httproutes")
            for file in sorted((_module(module) / folder).glob("*.yaml")):
                if any(each in file.name for each in wanted):
                    made.kubectl("apply", "--server-side", "-f", str(file))
        yield made


@pytest.fixture(scope="session")
def clouds(plane: Plane) -> Plane:
    """That control plane with nodes as three clouds have them."""
    from nodes import CLOUDS

    plane.apply(*CLOUDS)
    return plane


def _module(named: str) -> Path:
    """The folder of a Go module, downloaded once by Go itself."""
    done = subprocess.run(["go", "mod", "download", "-json", named], capture_output=True, text=True, check=True)
    return Path(json.loads(done.stdout)["Dir"])
