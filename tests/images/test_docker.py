"""The cpu image, built and run with Docker. All other tests use podman."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from bench.model.framework import ThreadPools
from bench.model.result import Result
from bench.store import files
from images.docker import Docker
from images.engine import BRIEF, RESTRICTED, mounted
from images.test_layers import contents

pytestmark = [
    pytest.mark.once,
    pytest.mark.needs("container-engine", "docker"),
    pytest.mark.timeout(3600),
]


def test_podman_and_docker_build_the_same_files_from_one_commit(cpu: str, docker: Docker, docker_cpu: str) -> None:
    with mounted(cpu) as podman_root, docker.mounted(docker_cpu) as docker_root:
        first, second = contents(podman_root), contents(docker_root)
    assert len(first) > 10_000
    assert {path for path in first.keys() | second.keys() if first.get(path) != second.get(path)} == set()


def test_docker_runs_the_image_restricted_as_any_user(docker: Docker, docker_cpu: str) -> None:
    options = (*RESTRICTED, "--tmpfs=/tmp", "--user=4711", "--cpus=1")
    process = docker("run", "--rm", *options, docker_cpu, "run", "matmul", "--param", "n=64", *BRIEF, "--json")
    (result,) = (Result.model_validate(document) for document in json.loads(process.stdout)["results"])
    assert result.status == "complete"
    assert result.environment.host.system.container == "docker"
    assert result.environment.framework is not None
    assert result.environment.framework.threads == ThreadPools(intra=1, inter=1)


def test_docker_stop_keeps_what_was_measured_and_gives_exit_code_143(
    docker: Docker, docker_cpu: str, tmp_path: Path
) -> None:
    shutil.chown(tmp_path, 1000, 1000)
    arguments = ("run", "tabular", "--case", "small", "--target-error", "0.1%", "--max-time", "10m")
    options = (*RESTRICTED, "--tmpfs=/tmp", f"--volume={tmp_path}:/results")
    name = docker("run", "--detach", *options, docker_cpu, *arguments).stdout.strip()
    docker.wait_for(name, "process 2")
    docker("stop", "--time", "2", name)
    assert docker("inspect", "--format", "{{.State.ExitCode}}", name).stdout.strip() == "143"  # 137 if it was killed
    (result,) = files.results(tmp_path)
    assert (result.status, result.stop and result.stop.reason) == ("partial", "interrupted")
    assert result.summary.step_seconds is not None
