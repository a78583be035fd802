"""The chart on a real node: real kubelet, containers, Services and images, from `helm install` to `helm uninstall`."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import real_node
import urllib3
from control_plane import ControlPlane, Object, wait_until
from images.base_images import python_3_13
from images.engine import build
from rendering import CHART, helm

from bench.version import __version__

pytestmark = [pytest.mark.once, pytest.mark.needs("real-node"), pytest.mark.timeout(2400)]

LOOKUPS = '''
"""Look up rows in a large table, which is faster with two threads than with one."""

import tensorflow as tf


def inputs(ctx):
    return (ctx.rng.integers(0, 4_000_000, 400_000, dtype="int32"),)


def step():
    table = tf.random.stateless_uniform((4_000_000, 16), seed=(1, 2))
    return lambda rows: tf.reduce_sum(tf.gather(table, rows), axis=0)
'''
TRAINS = '''
"""Train a small model."""

import tensorflow as tf
from pydantic import BaseModel


class Params(BaseModel):
    batch: int = 32


def data(p, ctx):
    return ctx.rng.normal(size=(640, 64)).astype("float32"), ctx.rng.integers(0, 4, 640)


def model(p):
    model = tf.keras.Sequential([tf.keras.layers.Input((64,)), tf.keras.layers.Dense(256), tf.keras.layers.Dense(4)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model
'''
TOGETHER = """#!{python}
import sys
import yaml

items = [item for item in yaml.safe_load_all(sys.stdin) if item]
for item in items:
    if item["kind"] == "Job":
        del item["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
yaml.safe_dump_all(items, sys.stdout)
"""
"""A post-renderer of Helm that lets all workers of a run share the only node."""

RUN = 600.0
"""Time limit of a run of one workload on a pool, in seconds."""


@dataclass
class Release:
    """A release of the chart on the node.

    Attributes:
        plane: control plane of the node.
        namespace: namespace of the release.
        program: "helm-3" or "helm-4".
    """

    plane: ControlPlane
    namespace: str
    program: str = "helm-4"

    def helm(self, *words: str) -> str:
        return helm(self.program, *words, "-n", self.namespace, kubeconfig=self.plane.kubeconfig)

    def upgrade(self, values: Object, *options: str) -> str:
        """Install or upgrade the release, with further options of Helm, and return its output."""
        file = self.plane.folder / "values.json"
        file.write_text(json.dumps(values), encoding="utf-8")
        return self.helm("upgrade", "--install", "devbench", str(CHART), "--values", str(file), *options)

    def jobs(self) -> dict[str, Object]:
        """Return the Jobs by pool."""
        jobs = self.plane.get("jobs", "-n", self.namespace)
        return {job["metadata"]["labels"]["devbench/pool"]: job for job in jobs}

    def pods(self, pool: str, *phases: str) -> list[Object]:
        """Return the pods of a pool that are in one of these phases."""
        pods = self.plane.get("pods", "-n", self.namespace, "-l", f"devbench/pool={pool}")
        return [pod for pod in pods if pod["status"]["phase"] in phases]

    def logs(self, pool: str) -> str:
        """Return the output of a pool's runs."""
        words = ("-n", self.namespace, "-l", f"devbench/pool={pool}", "--prefix", "--tail=-1")
        return self.plane.kubectl("logs", *words, check=False)

    def ended(self) -> bool:
        """Return whether every Job has ended."""
        conditions = [job["status"].get("conditions", []) for job in self.jobs().values()]
        return all(
            any(condition["type"] in ("Complete", "Failed") for condition in job_conditions)
            for job_conditions in conditions
        )

    @contextmanager
    def forward_hub(self) -> Iterator[str]:
        """Forward a port to the hub with the command from the notes of the chart, and yield its address."""
        words = [str(self.plane.kubectl_program), f"--kubeconfig={self.plane.kubeconfig}", "-n", self.namespace]
        words += ["port-forward", "service/devbench-hub", ":80", "--address=127.0.0.1"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            yield "http://" + process.stdout.readline().split()[2]
            process.terminate()

    def fetch(self, path: str) -> Any:
        """Return the response of the hub to a GET request."""
        with self.forward_hub() as url:
            response = urllib3.request("GET", url + path, timeout=30)
        assert response.status == 200, response.data
        return response.json()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with a real node that has the cpu and hub images."""
    base = python_3_13(tmp_path_factory.mktemp("base"))
    with TemporaryDirectory(prefix="db") as folder, real_node.run_node(Path(folder)) as plane:
        for backend in ("cpu", "hub"):
            real_node.load(plane, build(backend, base), f"docker.io/library/devbench:{__version__}-{backend}")
        yield plane


@pytest.fixture(scope="module")
def cuda(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of the cuda image. Its build takes minutes and about 25 GB of disk."""
    return build("cuda", python_3_13(tmp_path_factory.mktemp("base")))


@pytest.fixture(scope="module")
def release(node: ControlPlane) -> Release:
    """A release in a namespace with the restricted Pod Security level and a volume for the results."""
    name = "bench"
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
    node.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}, _volume(node))
    return Release(node, name)


def _volume(plane: ControlPlane) -> Object:
    folder = plane.folder / "volume"
    folder.mkdir()
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": [real_node.NAME]}
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
    """Return values with two pools on the same node, with one and two CPUs."""
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
    """Return all results of the hub, newest first."""
    return list(release.fetch("/api/v1/results?limit=200")["results"])


def start_run(release: Release, values: Object, pool: str) -> None:
    """Start new runs with changed values, and wait until the run of a pool measures."""
    before = {item["run"]["id"] for item in release.fetch("/api/v1/runs?limit=200")["runs"]}
    release.upgrade(values)

    def measuring() -> bool:
        items = release.fetch("/api/v1/runs?limit=200")["runs"]
        started = [item for item in items if item["run"]["id"] not in before and item["run"]["pool"] == pool]
        return any(item["state"] == "running" and (item["run"].get("progress") or {}).get("note") for item in started)

    wait_until(f"a new run of pool {pool} measures", measuring, RUN)


def test_two_pools_run_and_the_hub_compares_them(release: Release) -> None:
    output = release.upgrade(values())
    assert "kubectl -n bench port-forward service/devbench-hub" in output
    wait_until("both Jobs have ended", release.ended, RUN)
    by_pool = {result["pool"]: result for result in results(release)}
    assert {pool: result["status"] for pool, result in by_pool.items()} == {"one": "complete", "two": "complete"}
    documents = {pool: release.fetch(f"/api/v1/results/{result['id']}") for pool, result in by_pool.items()}
    for pool, limit in (("one", 1.0), ("two", 2.0)):
        host = documents[pool]["environment"]["host"]
        assert host["cpu"]["limit"] == limit
        assert (host["deployment"]["pool"], host["deployment"]["node"]) == (pool, real_node.NAME)
        assert documents[pool]["spec"]["threads"]["intra"] == limit
    comparison = release.fetch(f"/api/v1/comparisons?baseline={by_pool['one']['id']}&other={by_pool['two']['id']}")
    assert comparison["ratio"]["value"] < 1  # the pool with two CPUs is faster


def test_the_jobs_of_two_pools_run_one_after_the_other(release: Release) -> None:
    spans = []
    for job in release.jobs().values():
        (pod,) = release.pods(job["metadata"]["labels"]["devbench/pool"], "Succeeded")
        (container,) = pod["status"]["containerStatuses"]
        terminated = container["state"]["terminated"]
        spans.append((terminated["startedAt"], terminated["finishedAt"]))
    (_, first_ended), (second_started, _) = sorted(spans)
    assert first_ended <= second_started


def test_the_overview_of_the_hub_shows_both_pools(release: Release, chromium_path: str) -> None:
    from playwright.sync_api import sync_playwright

    with release.forward_hub() as url, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium_path, args=["--no-sandbox"], timeout=180_000)
        page = browser.new_page()
        page.goto(url)
        text = page.inner_text("main")
        page.screenshot(path=release.plane.folder.parent / "devbench-real.png", full_page=True)
        browser.close()
    assert "lookups" in text
    assert "one" in text
    assert "two" in text


@pytest.mark.needs("prometheus")
def test_prometheus_scrapes_the_hub_through_its_service(release: Release) -> None:
    (service,) = [
        item
        for item in release.plane.get("services", "-n", release.namespace)
        if item["metadata"]["name"] == "devbench-hub"
    ]
    folder = release.plane.folder / "prometheus"
    folder.mkdir()
    target = f"{service['spec']['clusterIP']}:80"
    config = {
        "scrape_configs": [{"job_name": "hub", "scrape_interval": "2s", "static_configs": [{"targets": [target]}]}]
    }
    (folder / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
    release.plane.start_program(
        Path("prometheus"), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={real_node.NODE}:9090",
    )  # fmt: skip

    def scraped() -> list[Object]:
        address = f"http://{real_node.NODE}:9090/api/v1/query?query=devbench_result_step_seconds"
        try:
            response = urllib3.request("GET", address, retries=False)
        except urllib3.exceptions.HTTPError:
            return []
        return list(response.json()["data"]["result"]) if response.status == 200 else []

    wait_until("Prometheus has both results", lambda: len(scraped()) == 2)
    assert all(float(series["value"][1]) > 0 for series in scraped())


def test_a_change_of_the_hub_alone_starts_no_run(release: Release) -> None:
    before = {pool: job["metadata"]["uid"] for pool, job in release.jobs().items()}
    changed = values()
    changed["hub"] = {**changed["hub"], "podAnnotations": {"changed": "1"}}
    release.upgrade(changed)
    release.plane.kubectl("rollout", "status", "deployment/devbench-hub", "-n", release.namespace, "--timeout=120s")
    assert {pool: job["metadata"]["uid"] for pool, job in release.jobs().items()} == before


def test_a_hub_that_is_killed_during_a_run_loses_no_result_and_superseded_jobs_are_removed(release: Release) -> None:
    before = {result["id"] for result in results(release)}
    jobs = {job["metadata"]["name"] for job in release.jobs().values()}
    start_run(release, values(settings={"max_time": "20s", "max_processes": 3, "seed": 2}), "two")
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
    wait_until("both Jobs have ended", release.ended, RUN)
    assert not jobs & {job["metadata"]["name"] for job in release.jobs().values()}
    release.plane.kubectl("rollout", "status", "deployment/devbench-hub", "-n", release.namespace, "--timeout=120s")
    after = results(release)
    assert before < {result["id"] for result in after}
    assert len(after) == 4
    assert all(result["status"] == "complete" for result in after)


def test_a_run_on_a_drained_node_is_interrupted_and_runs_again(release: Release) -> None:
    start_run(release, values(settings={"max_time": "20s", "max_processes": 3, "seed": 3}), "two")
    selector = "--pod-selector=app.kubernetes.io/component=run"
    release.plane.kubectl("drain", real_node.NAME, "--force", "--delete-emptydir-data", selector, "--timeout=120s")
    release.plane.kubectl("uncordon", real_node.NAME)
    wait_until("both Jobs have ended", release.ended, RUN)
    after = results(release)
    assert len(after) == 6
    attempts = {result["pool"]: result["attempt"] for result in after[:2]}
    assert attempts["two"] == attempts["one"] + 10  # 1, the number of failed pods, 1
    assert all(result["status"] == "complete" for result in after)


def test_helm_test_waits_for_the_results_and_removes_its_pod(release: Release) -> None:
    output = release.helm("test", "devbench", "--timeout", "5m")
    assert "Succeeded" in output
    pods = release.plane.get("pods", "-n", release.namespace)
    assert not [pod for pod in pods if pod["metadata"]["name"].endswith("-test")]


def test_logs_and_pod_specs_contain_no_secret(release: Release) -> None:
    (secret,) = [
        item
        for item in release.plane.get("secrets", "-n", release.namespace)
        if item["metadata"]["name"].startswith("devbench") and "token" in item.get("data", {})
    ]
    token = base64.b64decode(secret["data"]["token"]).decode().strip()
    assert len(token) >= 16
    for pod in release.plane.get("pods", "-n", release.namespace):
        name = pod["metadata"]["name"]
        assert token not in release.plane.kubectl("logs", name, "-n", release.namespace, check=False)
        assert token not in json.dumps(pod["spec"])


def test_uninstalling_leaves_only_the_results(release: Release) -> None:
    output = release.helm("uninstall", "devbench")
    assert "devbench-results" in output
    wait_until("its pods are gone", lambda: not release.plane.get("pods", "-n", release.namespace))
    kinds = "deployments,services,jobs,configmaps,secrets,serviceaccounts,roles,rolebindings,networkpolicies"
    remaining = [
        f"{item['kind']}/{item['metadata']['name']}" for item in release.plane.get(kinds, "-n", release.namespace)
    ]
    assert [name for name in remaining if "devbench" in name] == []
    (claim,) = release.plane.get("persistentvolumeclaims", "-n", release.namespace)
    assert claim["metadata"]["name"] == "devbench-results"


def test_helm_3_installs_the_chart_and_both_pools_complete(node: ControlPlane) -> None:
    release = Release(node, "bench-3", "helm-3")
    node.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": release.namespace}})
    release_values = values()
    release_values["hub"] = {**release_values["hub"], "persistence": {"enabled": False}}
    release.upgrade(release_values)
    wait_until("both Jobs have ended", release.ended, RUN)
    items = results(release)
    assert sorted((result["pool"], result["status"]) for result in items) == [("one", "complete"), ("two", "complete")]
    release.helm("uninstall", "devbench")


def test_the_pods_of_two_workers_train_together(node: ControlPlane) -> None:
    release = Release(node, "scaling", "helm-3")
    node.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": release.namespace}})
    release_values = values(workloads=["trains"], customWorkloads={"trains": {"inline": TRAINS}})
    release_values["settings"] = {"max_time": "60s", "max_processes": 1}
    release_values["pools"] = {"cpu": None, "t4": None, "pair": {"cpu": 1, "workers": [2]}}
    release_values["hub"] = {**release_values["hub"], "persistence": {"enabled": False}}
    together = node.folder / "together"
    together.write_text(TOGETHER.format(python=sys.executable), encoding="utf-8")
    together.chmod(0o755)
    release.upgrade(release_values, "--post-renderer", str(together))
    wait_until("the Job has ended", release.ended, RUN)
    assert len(release.pods("pair", "Succeeded")) == 2, release.logs("pair")
    by_count = {}
    for item in results(release):
        document = release.fetch(f"/api/v1/results/{item['id']}")
        workers = document["spec"]["workers"]
        if workers["strategy"] != "none" and workers["reduce"]:
            by_count[workers["count"]] = document
    assert by_count.keys() == {1, 2}
    assert {document["status"] for document in by_count.values()} == {"complete"}
    (one,), (two,) = (by_count[count]["samples"] for count in (1, 2))
    assert two["first_losses"] == pytest.approx(one["first_losses"], rel=1e-3)
    with release.forward_hub() as url:
        page = urllib3.request("GET", f"{url}/scaling/{by_count[2]['parent']}", timeout=30)
    assert page.status == 200
    assert "2 workers" in page.data.decode()
    release.helm("uninstall", "devbench")


def test_a_run_on_a_node_that_lacks_its_claimed_gpu_fails_with_the_cause(node: ControlPlane, cuda: str) -> None:
    real_node.load(node, cuda, f"docker.io/library/devbench:{__version__}-cuda")
    claim = '[{"op":"add","path":"/status/capacity/nvidia.com~1gpu","value":"1"}]'
    node.kubectl("patch", "node", real_node.NAME, "--subresource=status", "--type=json", "-p", claim)
    release = Release(node, "bench-gpu")
    node.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": release.namespace}})
    release_values = values(workloads=["matmul"], customWorkloads={})
    release_values["pools"] = {"cpu": None, "t4": None, "gpu": {"backend": "cuda", "preset": "none", "cpu": 1}}
    release_values["hub"] = {**release_values["hub"], "persistence": {"enabled": False}}
    release.upgrade(release_values)
    wait_until("the Job has ended", release.ended, RUN)
    by_backend = {result["backend"]: result for result in results(release)}
    assert by_backend["cuda"]["status"] == "failed"
    document = release.fetch(f"/api/v1/results/{by_backend['cuda']['id']}")
    assert document["failure"]["kind"] == "device"
    assert "NVIDIA" in document["failure"]["message"] + document["failure"]["hint"]
    (run,) = release.fetch("/api/v1/runs")["runs"]
    assert run["state"] == "failed"
    (job,) = release.jobs().values()
    assert any(condition["reason"] == "PodFailurePolicy" for condition in job["status"]["conditions"])
    release.helm("uninstall", "devbench")
