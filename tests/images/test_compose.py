"""`compose.yaml`: one backend after the other into one folder, and a comparison that says that it was so.

Run by podman-compose. There is no GPU here, so the service `cuda` is given the cpu image and another loop in its place;
what it asks the engine for is looked at apart.
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
    extra_hosts: ["hub:10.89.213.2"] # Debian's podman 4 has no names in its networks
networks:
  default: {{ipam: {{config: [{{subnet: 10.89.213.0/24}}]}}}}
"""

PYTHON = "/opt/devbench/bin/python"
ASK = "from urllib.request import urlopen; print(urlopen('http://localhost:8080{}').read().decode())"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the file, what changes it for here, and one for results."""
    shutil.copy(ROOT / "compose.yaml", tmp_path)
    (tmp_path / "here.yaml").write_text(OVERRIDE)
    (tmp_path / "results").mkdir()
    shutil.chown(tmp_path / "results", 1000, 1000)
    return tmp_path


def compose(folder: Path, *words: str) -> str:
    """Runs podman-compose there; returns all that it showed."""
    command = [
        str(Path(sys.executable).parent / "podman-compose"),
        "--file",
        "compose.yaml",
        "--file",
        "here.yaml",
        *words,
    ]
    given = {**environment(), "WORKLOAD": "matmul", "COMPOSE_PROJECT_NAME": "devbench-test"}
    done = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=600)
    return done.stdout + done.stderr


def test_both_are_measured_one_after_the_other_and_compared_without_turns(cpu: str, folder: Path) -> None:
    try:
        each = ("cpu", "cuda", "compare")  # podman's `up` starts again what has ended and is depended on
        run = ("--profile", "gpu", "run", "--rm", "--no-deps", "-T")
        shown = "".join(compose(folder, *run, service) for service in each)
        results = files.results(folder / "results")
        assert {each.status for each in results} == {"complete"}, shown
        assert len(results) == 2, shown
        assert "not interleaved" in " ".join(shown.split()), shown
    finally:
        compose(folder, "--profile", "gpu", "down", "--volumes")


def test_without_the_profile_the_cpu_alone_is_measured(cpu: str, folder: Path) -> None:
    try:
        shown = compose(folder, "up")
        (result,) = files.results(folder / "results")
        assert (result.status, result.spec.backend) == ("complete", "cpu"), shown
    finally:
        compose(folder, "down", "--volumes")


def test_the_gpu_is_asked_for_where_the_cuda_image_is_run_and_nowhere_else() -> None:
    import yaml

    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert {name for name, service in services.items() if "deploy" in service} == {"cuda"}
    (device,) = services["cuda"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    assert services["cuda"]["profiles"] == services["compare"]["profiles"] == ["gpu"]
    own = [service for service in services.values() if service["image"].startswith("devbench:")]
    assert len(own) == 5
    assert all(service["read_only"] and service["cap_drop"] == ["ALL"] for service in own)


def test_an_observed_run_brings_its_result_to_the_hub_beside_it(cpu: str, hub: str, folder: Path) -> None:
    def ask(path: str) -> str:
        return compose(folder, "--profile", "observe", "exec", "-T", "hub", PYTHON, "-c", ASK.format(path))

    try:
        shown = compose(folder, "--profile", "observe", "up", "--detach", "hub")
        shown += compose(folder, "--profile", "observe", "run", "--rm", "--no-deps", "-T", "measured")
        (result,) = files.results(folder / "results")
        assert (result.spec.workload, result.status) == ("matmul", "complete"), shown
        assert f'"id":"{result.id}"' in ask("/api/v1/results"), shown
        assert '"state":"finished"' in ask("/api/v1/runs"), shown
        assert "devbench_result_step_seconds{" in ask("/metrics"), shown
    finally:
        compose(folder, "--profile", "observe", "down", "--volumes")


def test_grafana_looks_for_dashboards_where_they_are_mounted_and_prometheus_for_whom_it_scrapes() -> None:
    import yaml

    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    known = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in (ROOT / "observe").glob("*.yaml")}
    mounts = [mount.split(":") for name in ("grafana", "prometheus") for mount in services[name]["volumes"]]
    assert all((ROOT / source).exists() for source, *_ in mounts)
    inside = {target: ROOT / source for source, target, *_ in mounts}
    (provider,) = known["dashboards"]["providers"]
    assert list(inside[provider["options"]["path"]].glob("*.json"))
    (source,) = known["datasource"]["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (rules,) = known["prometheus"]["rule_files"]
    assert list(inside[str(Path(rules).parent)].glob(Path(rules).name))
    scraped = [
        target for job in known["prometheus"]["scrape_configs"] for target in job["static_configs"][0]["targets"]
    ]
    assert {target.partition(":")[0] for target in scraped} <= services.keys()
    (port,) = {target.partition(":")[2] for target in scraped if target.startswith("measured:")}
    assert f"--metrics-port {port}" in services["measured"]["command"]
