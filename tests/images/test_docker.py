"""The cpu image as Docker builds and runs it; podman does in all other files."""

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


def test_two_builds_from_one_commit_have_the_same_files_though_one_is_podmans_and_one_dockers(
    cpu: str, docker: Docker, docker_cpu: str
) -> None:
    with mounted(cpu) as one, docker.mounted(docker_cpu) as two:
        first, second = contents(one), contents(two)
    assert len(first) > 10_000
    assert {path for path in first.keys() | second.keys() if first.get(path) != second.get(path)} == set()


def test_docker_runs_it_as_any_user_without_rights_network_or_a_root_that_can_be_written(
    docker: Docker, docker_cpu: str
) -> None:
    options = (*RESTRICTED, "--tmpfs=/tmp", "--user=4711", "--cpus=1")
    ran = docker("run", "--rm", *options, docker_cpu, "run", "matmul", "--param", "n=64", *BRIEF, "--json")
    (result,) = (Result.model_validate(each) for each in json.loads(ran.stdout)["results"])
    assert result.status == "complete"
    assert result.environment.host.system.container == "docker"
    assert result.environment.framework is not None
    assert result.environment.framework.threads == ThreadPools(intra=1, inter=1)


def test_docker_stop_keeps_what_was_measured_and_ends_it_with_143(
    docker: Docker, docker_cpu: str, tmp_path: Path
) -> None:
    shutil.chown(tmp_path, 1000, 1000)
    words = ("run", "tabular", "--case", "small", "--target-error", "0.1%", "--max-time", "10m")
    options = (*RESTRICTED, "--tmpfs=/tmp", f"--volume={tmp_path}:/results")
    name = docker("run", "--detach", *options, docker_cpu, *words).stdout.strip()
    docker.until(name, "process 2")
    docker("stop", "--time", "2", name)
    assert docker("inspect", "--format", "{{.State.ExitCode}}", name).stdout.strip() == "143"  # killed: 137
    (result,) = files.results(tmp_path)
    assert (result.status, result.stop and result.stop.reason) == ("partial", "interrupted")
    assert result.summary.step_seconds is not None
