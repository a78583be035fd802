"""`compose.yaml`: two backends write results to one folder one after the other, and a comparison says so.

The tests use podman-compose and have no GPU. So the service `cuda` runs the cpu image with another loop, and a separate
test checks which device it requests.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench.store import files
from images.engine import ROOT, environment

pytestmark = [pytest.mark.once, pytest.mark.needs("container-engine"), pytest.mark.timeout(3600)]

SMALL = "{DEVBENCH_PARAM: n=64, DEVBENCH_MAX_PROCESSES: '1', DEVBENCH_MAX_TIME: 5s}"

OVERRIDE = f"""
services:
  cpu:
    image: localhost/devbench-test:cpu
    environment: {SMALL}
  cuda:
    image: localhost/devbench-test:cpu
    environment: {SMALL}
    deploy: !reset null
    command: run matmul --loop step
  compare:
    image: localhost/devbench-test:cpu
  hub:
    image: localhost/devbench-test:hub
    ports: !reset null
    networks: {{default: {{ipv4_address: 10.89.213.2}}}}
  measured:
    image: localhost/devbench-test:cpu
    environment: {SMALL}
    extra_hosts: ["hub:10.89.213.2"] # podman 4 of Debian has no DNS in its networks
networks:
  default: {{ipam: {{config: [{{subnet: 10.89.213.0/24}}]}}}}
"""

PYTHON = "/opt/devbench/bin/python"
FETCH = "from urllib.request import urlopen; print(urlopen('http://localhost:8080{}').read().decode())"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with `compose.yaml`, a file of overrides and a folder for results."""
    shutil.copy(ROOT / "compose.yaml", tmp_path)
    (tmp_path / "overrides.yaml").write_text(OVERRIDE)
    (tmp_path / "results").mkdir()
    shutil.chown(tmp_path / "results", 1000, 1000)
    return tmp_path


def compose(folder: Path, *arguments: str) -> str:
    """Run podman-compose in a folder, and return its output."""
    command = [
        str(Path(sys.executable).parent / "podman-compose"),
        "--file",
        "compose.yaml",
        "--file",
        "overrides.yaml",
        *arguments,
    ]
    environ = {**environment(), "WORKLOAD": "matmul", "COMPOSE_PROJECT_NAME": "devbench-test"}
    process = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=600)
    return process.stdout + process.stderr


def test_both_backends_are_measured_one_after_the_other_and_compared(cpu: str, folder: Path) -> None:
    try:
        services = ("cpu", "cuda", "compare")  # `up` of podman restarts completed services that others depend on
        run = ("--profile", "gpu", "run", "--rm", "--no-deps", "-T")
        output = "".join(compose(folder, *run, service) for service in services)
        results = files.results(folder / "results")
        assert {result.status for result in results} == {"complete"}, output
        assert len(results) == 2, output
        assert "not interleaved" in " ".join(output.split()), output
    finally:
        compose(folder, "--profile", "gpu", "down", "--volumes")


def test_without_the_profile_only_the_cpu_is_measured(cpu: str, folder: Path) -> None:
    try:
        output = compose(folder, "up")
        (result,) = files.results(folder / "results")
        assert (result.status, result.spec.backend) == ("complete", "cpu"), output
    finally:
        compose(folder, "down", "--volumes")


def test_only_the_service_of_the_cuda_image_requests_the_gpu() -> None:
    import yaml

    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert {name for name, service in services.items() if "deploy" in service} == {"cuda"}
    (device,) = services["cuda"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    assert services["cuda"]["profiles"] == services["compare"]["profiles"] == ["gpu"]
    own_services = [service for service in services.values() if service["image"].startswith("devbench:")]
    assert len(own_services) == 5
    assert all(service["read_only"] and service["cap_drop"] == ["ALL"] for service in own_services)


def test_an_observed_run_sends_its_result_to_the_hub(cpu: str, hub: str, folder: Path) -> None:
    def fetch(path: str) -> str:
        return compose(folder, "--profile", "observe", "exec", "-T", "hub", PYTHON, "-c", FETCH.format(path))

    try:
        output = compose(folder, "--profile", "observe", "up", "--detach", "hub")
        output += compose(folder, "--profile", "observe", "run", "--rm", "--no-deps", "-T", "measured")
        (result,) = files.results(folder / "results")
        assert (result.spec.workload, result.status) == ("matmul", "complete"), output
        assert f'"id":"{result.id}"' in fetch("/api/v1/results"), output
        assert '"state":"finished"' in fetch("/api/v1/runs"), output
        assert "devbench_result_step_seconds{" in fetch("/metrics"), output
    finally:
        compose(folder, "--profile", "observe", "down", "--volumes")


def test_grafana_and_prometheus_find_their_mounted_files_and_targets() -> None:
    import yaml

    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    configurations = {
        path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in (ROOT / "observe").glob("*.yaml")
    }
    mounts = [mount.split(":") for name in ("grafana", "prometheus") for mount in services[name]["volumes"]]
    assert all((ROOT / source).exists() for source, *_ in mounts)
    mounted = {target: ROOT / source for source, target, *_ in mounts}
    (provider,) = configurations["dashboards"]["providers"]
    assert list(mounted[provider["options"]["path"]].glob("*.json"))
    (source,) = configurations["datasource"]["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (rules,) = configurations["prometheus"]["rule_files"]
    assert list(mounted[str(Path(rules).parent)].glob(Path(rules).name))
    targets = [
        target
        for job in configurations["prometheus"]["scrape_configs"]
        for target in job["static_configs"][0]["targets"]
    ]
    assert {target.partition(":")[0] for target in targets} <= services.keys()
    (port,) = {target.partition(":")[2] for target in targets if target.startswith("measured:")}
    assert f"--metrics-port {port}" in services["measured"]["command"]
