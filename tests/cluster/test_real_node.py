"""The chart on a real node: real kubelet, containers, Services and images, from `helm install` to `helm uninstall`."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import realnode
import urllib3
from images.engine import build
from images.standins import python_3_13
from plane import Object, Plane, until
from rendering import CHART, helm

pytestmark = [pytest.mark.once, pytest.mark.needs("real-node"), pytest.mark.timeout(2400)]

LOOKUPS = '''
"""Looks rows up in a large table, which two threads do sooner than one."""

import tensorflow as tf


def inputs(ctx):
    return (ctx.rng.integers(0, 4_000_000, 400_000, dtype="int32"),)


def step():
    table = tf.random.stateless_uniform((4_000_000, 16), seed=(1, 2))
    return lambda rows: tf.reduce_sum(tf.gather(table, rows), axis=0)
'''
RUN = 600.0
"""Seconds within which a run of one workload on a pool has ended."""


@dataclass
class Release:
    """The chart as it is installed on the node.

    Attributes:
        program: the Helm that installed it.
    """

    plane: Plane
    namespace: str
    program: str = "helm-4"

    def helm(self, *words: str) -> str:
        return helm(self.program, *words, "-n", self.namespace, kubeconfig=self.plane.kubeconfig)

    def upgrade(self, values: Object) -> str:
        """Installs it, or brings it up to date; returns what Helm says."""
        file = self.plane.folder / "values.json"
        file.write_text(json.dumps(values), encoding="utf-8")
        return self.helm("upgrade", "--install", "devbench", str(CHART), "--values", str(file))

    def jobs(self) -> dict[str, Object]:
        """The Jobs by their pool."""
        found = self.plane.get("jobs", "-n", self.namespace)
        return {each["metadata"]["labels"]["devbench/pool"]: each for each in found}

    def pods(self, pool: str, *phases: str) -> list[Object]:
        """The pods of a pool in one of these phases."""
        found = self.plane.get("pods", "-n", self.namespace, "-l", f"devbench/pool={pool}")
        return [each for each in found if each["status"]["phase"] in phases]

    def ended(self) -> bool:
        """Whether every Job has."""
        conditions = [each["status"].get("conditions", []) for each in self.jobs().values()]
        return all(any(one["type"] in ("Complete", "Failed") for one in each) for each in conditions)

    @contextmanager
    def forwarded(self) -> Iterator[str]:
        """The hub's address, by the command that the chart's notes name."""
        words = [str(self.plane.kubectl_program), f"--kubeconfig={self.plane.kubeconfig}", "-n", self.namespace]
        words += ["port-forward", "service/devbench-hub", ":80", "--address=127.0.0.1"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            yield "http://" + process.stdout.readline().split()[2]
            process.terminate()

    def told(self, path: str) -> Any:
        """What the hub answers."""
        with self.forwarded() as url:
            answer = urllib3.request("GET", url + path, timeout=30)
        assert answer.status == 200, answer.data
        return answer.json()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane with a real node that holds the images of cpu and hub."""
    base = python_3_13(tmp_path_factory.mktemp("base"))
    with TemporaryDirectory(prefix="db") as folder, realnode.started(Path(folder)) as plane:
        for backend in ("cpu", "hub"):
            realnode.load(plane, build(backend, base), f"docker.io/library/devbench:{backend}")
        yield plane


@pytest.fixture(scope="module")
def cuda(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The cuda image, which takes minutes and some 25 GB of disk to build."""
    return build("cuda", python_3_13(tmp_path_factory.mktemp("base")))


@pytest.fixture(scope="module")
def release(node: Plane) -> Release:
    """A namespace of the restricted Pod Security level, with a volume for the hub's results."""
    name = "bench"
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
    node.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}, _volume(node))
    return Release(node, name)


def _volume(plane: Plane) -> Object:
    folder = plane.folder / "volume"
    folder.mkdir()
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": [realnode.NAME]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "results"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "8Gi"},
            "local": {"path": str(folder)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
            "storageClassName": "own",
        },
    }


def values(**more: Any) -> Object:
    """Two pools on the one node, which differ in their CPUs."""
    nothing = {"cpu": "0"}
    return {
        "workloads": ["lookups"],
        "customWorkloads": {"lookups": {"inline": LOOKUPS}},
        "settings": {"max_time": "20s", "max_processes": 3},
        "poolDefaults": {"preset": "none", "memory": "2Gi", "ephemeralStorage": "256Mi"},
        "pools": {"cpu": None, "t4": None, "one": {"cpu": 1}, "two": {"cpu": 2}},
        "image": {"pullPolicy": "Never"},
        "hub": {"persistence": {"storageClass": "own"}, "resources": {"requests": nothing}},
        "watcher": {"resources": {"requests": nothing}},
        "metrics": {"lingerSeconds": 5},
        **more,
    }


def results(release: Release) -> list[Object]:
    """All results that the hub has, newest first."""
    return list(release.told("/api/v1/results?limit=200")["results"])


def under_way(release: Release, values: Object, pool: str) -> None:
    """Asks for new runs, and returns as soon as that of a pool has begun to measure."""
    before = {each["run"]["id"] for each in release.told("/api/v1/runs?limit=200")["runs"]}
    release.upgrade(values)

    def begun() -> bool:
        told = release.told("/api/v1/runs?limit=200")["runs"]
        ours = [each for each in told if each["run"]["id"] not in before and each["run"]["pool"] == pool]
        return any(each["state"] == "running" and (each["run"].get("progress") or {}).get("note") for each in ours)

    until(f"a new run of pool {pool} measures", begun, RUN)


def test_two_pools_run_and_the_hub_compares_them(release: Release) -> None:
    said = release.upgrade(values())
    assert "kubectl -n bench port-forward service/devbench-hub" in said
    until("both Jobs have ended", release.ended, RUN)
    found = {each["pool"]: each for each in results(release)}
    assert {pool: each["status"] for pool, each in found.items()} == {"one": "complete", "two": "complete"}
    whole = {pool: release.told(f"/api/v1/results/{each['id']}") for pool, each in found.items()}
    for pool, limit in (("one", 1.0), ("two", 2.0)):
        host = whole[pool]["environment"]["host"]
        assert host["cpu"]["limit"] == limit
        assert (host["deployment"]["pool"], host["deployment"]["node"]) == (pool, realnode.NAME)
        assert whole[pool]["spec"]["threads"]["intra"] == limit
    compared = release.told(f"/api/v1/comparisons?base={found['one']['id']}&other={found['two']['id']}")
    assert compared["ratio"]["value"] < 1  # the pool of two CPUs takes less time


def test_the_jobs_of_two_pools_run_one_after_the_other(release: Release) -> None:
    spans = []
    for job in release.jobs().values():
        (pod,) = release.pods(job["metadata"]["labels"]["devbench/pool"], "Succeeded")
        (container,) = pod["status"]["containerStatuses"]
        ended = container["state"]["terminated"]
        spans.append((ended["startedAt"], ended["finishedAt"]))
    (_, first_ended), (second_began, _) = sorted(spans)
    assert first_ended <= second_began


def test_the_overview_of_the_hub_shows_both_pools(release: Release, chromium_path: str) -> None:
    from playwright.sync_api import sync_playwright

    with release.forwarded() as url, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium_path, args=["--no-sandbox"], timeout=180_000)
        page = browser.new_page()
        page.goto(url)
        shown = page.inner_text("main")
        page.screenshot(path=release.plane.folder.parent / "devbench-real.png", full_page=True)
        browser.close()
    assert "lookups" in shown
    assert "one" in shown
    assert "two" in shown


@pytest.mark.needs("prometheus")
def test_prometheus_scrapes_the_hub_through_its_service(release: Release) -> None:
    (service,) = [
        each
        for each in release.plane.get("services", "-n", release.namespace)
        if each["metadata"]["name"] == "devbench-hub"
    ]
    folder = release.plane.folder / "prometheus"
    folder.mkdir()
    target = f"{service['spec']['clusterIP']}:80"
    config = {
        "scrape_configs": [{"job_name": "hub", "scrape_interval": "2s", "static_configs": [{"targets": [target]}]}]
    }
    (folder / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
    release.plane.begin(
        Path("prometheus"), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={realnode.NODE}:9090",
    )  # fmt: skip

    def scraped() -> list[Object]:
        address = f"http://{realnode.NODE}:9090/api/v1/query?query=devbench_result_step_seconds"
        try:
            answer = urllib3.request("GET", address, retries=False)
        except urllib3.exceptions.HTTPError:
            return []
        return list(answer.json()["data"]["result"]) if answer.status == 200 else []

    until("Prometheus has both results", lambda: len(scraped()) == 2)
    assert all(float(each["value"][1]) > 0 for each in scraped())


def test_a_change_of_the_hub_alone_starts_no_run(release: Release) -> None:
    before = {pool: job["metadata"]["uid"] for pool, job in release.jobs().items()}
    changed = values()
    changed["hub"] = {**changed["hub"], "podAnnotations": {"changed": "1"}}
    release.upgrade(changed)
    release.plane.kubectl("rollout", "status", "deployment/devbench-hub", "-n", release.namespace, "--timeout=120s")
    assert {pool: job["metadata"]["uid"] for pool, job in release.jobs().items()} == before


def test_a_hub_that_is_killed_during_a_run_loses_no_result_and_superseded_jobs_are_removed(release: Release) -> None:
    before = {each["id"] for each in results(release)}
    jobs = {job["metadata"]["name"] for job in release.jobs().values()}
    under_way(release, values(settings={"max_time": "20s", "max_processes": 3, "seed": 2}), "two")
    release.plane.kubectl(
        "delete",
        "pods",
        "-n",
        release.namespace,
        "-l",
        "app.kubernetes.io/component=hub",
        "--force",
        "--grace-period=0",
    )
    until("both Jobs have ended", release.ended, RUN)
    assert not jobs & {job["metadata"]["name"] for job in release.jobs().values()}
    release.plane.kubectl("rollout", "status", "deployment/devbench-hub", "-n", release.namespace, "--timeout=120s")
    after = results(release)
    assert before < {each["id"] for each in after}
    assert len(after) == 4
    assert all(each["status"] == "complete" for each in after)


def test_a_run_on_a_drained_node_is_interrupted_and_runs_again(release: Release) -> None:
    under_way(release, values(settings={"max_time": "20s", "max_processes": 3, "seed": 3}), "two")
    selector = "--pod-selector=app.kubernetes.io/component=run"
    release.plane.kubectl("drain", realnode.NAME, "--force", "--delete-emptydir-data", selector, "--timeout=120s")
    release.plane.kubectl("uncordon", realnode.NAME)
    until("both Jobs have ended", release.ended, RUN)
    after = results(release)
    assert len(after) == 6
    (again,) = [each for each in after[:2] if each["pool"] == "two"]
    assert again["attempt"] > 1
    assert all(each["status"] == "complete" for each in after)


def test_helm_test_waits_for_the_results_and_removes_its_pod(release: Release) -> None:
    said = release.helm("test", "devbench", "--timeout", "5m")
    assert "Succeeded" in said
    pods = release.plane.get("pods", "-n", release.namespace)
    assert not [each for each in pods if each["metadata"]["name"].endswith("-test")]


def test_logs_and_pod_specs_contain_no_secret(release: Release) -> None:
    (secret,) = [
        each
        for each in release.plane.get("secrets", "-n", release.namespace)
        if each["metadata"]["name"].startswith("devbench") and "token" in each.get("data", {})
    ]
    token = base64.b64decode(secret["data"]["token"]).decode().strip()
    assert len(token) >= 16
    for pod in release.plane.get("pods", "-n", release.namespace):
        name = pod["metadata"]["name"]
        assert token not in release.plane.kubectl("logs", name, "-n", release.namespace, check=False)
        assert token not in json.dumps(pod["spec"])


def test_uninstalling_leaves_only_the_results(release: Release) -> None:
    said = release.helm("uninstall", "devbench")
    assert "devbench-results" in said
    until("its pods are gone", lambda: not release.plane.get("pods", "-n", release.namespace))
    kinds = "deployments,services,jobs,configmaps,secrets,serviceaccounts,roles,rolebindings,networkpolicies"
    left = [f"{each['kind']}/{each['metadata']['name']}" for each in release.plane.get(kinds, "-n", release.namespace)]
    assert [each for each in left if "devbench" in each] == []
    (claim,) = release.plane.get("persistentvolumeclaims", "-n", release.namespace)
    assert claim["metadata"]["name"] == "devbench-results"


def test_helm_3_installs_the_chart_and_both_pools_complete(node: Plane) -> None:
    release = Release(node, "bench-3", "helm-3")
    node.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": release.namespace}})
    own = values()
    own["hub"] = {**own["hub"], "persistence": {"enabled": False}}
    release.upgrade(own)
    until("both Jobs have ended", release.ended, RUN)
    found = results(release)
    assert sorted((each["pool"], each["status"]) for each in found) == [("one", "complete"), ("two", "complete")]
    release.helm("uninstall", "devbench")


def test_a_run_on_a_node_that_lacks_its_claimed_gpu_fails_with_the_cause(node: Plane, cuda: str) -> None:
    realnode.load(node, cuda, "docker.io/library/devbench:cuda")
    claim = '[{"op":"add","path":"/status/capacity/nvidia.com~1gpu","value":"1"}]'
    node.kubectl("patch", "node", realnode.NAME, "--subresource=status", "--type=json", "-p", claim)
    release = Release(node, "bench-gpu")
    node.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": release.namespace}})
    own = values(workloads=["matmul"], customWorkloads={})
    own["pools"] = {"cpu": None, "t4": None, "gpu": {"backend": "cuda", "preset": "none", "cpu": 1}}
    own["hub"] = {**own["hub"], "persistence": {"enabled": False}}
    release.upgrade(own)
    until("the Job has ended", release.ended, RUN)
    found = {each["backend"]: each for each in results(release)}
    assert found["cuda"]["status"] == "failed"
    whole = release.told(f"/api/v1/results/{found['cuda']['id']}")
    assert whole["failure"]["kind"] == "device"
    assert "NVIDIA" in whole["failure"]["message"] + whole["failure"]["hint"]
    (run,) = release.told("/api/v1/runs")["runs"]
    assert run["state"] == "failed"
    (job,) = release.jobs().values()
    assert any(each["reason"] == "PodFailurePolicy" for each in job["status"]["conditions"])
    release.helm("uninstall", "devbench")
