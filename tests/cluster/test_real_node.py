"""The chart on a real node: real kubelet, containers, Services and images, from `helm install` to `helm uninstall`."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
import real_node
import urllib3
from control_plane import ControlPlane, Object, wait_until
from images.base_images import python_3_13
from images.engine import build
from release import RUN, Release, results, values, volatile_values

from bench.version import __version__

pytestmark = [pytest.mark.once, pytest.mark.needs("real-node"), pytest.mark.timeout(2400)]

SCRIPT = """
import numpy as np
from tensorflow import keras

images, labels = np.random.rand(3200, 64).astype("float32"), np.random.randint(0, 4, 3200)
model = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(256, "relu"), keras.layers.Dense(4)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(images, labels, epochs=20, batch_size=32)
"""


@pytest.fixture(scope="module")
def cuda(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of the cuda image. Its build takes minutes and about 25 GB of disk."""
    return build("cuda", python_3_13(tmp_path_factory.mktemp("base")))


@pytest.fixture(scope="module")
def release(real_plane: ControlPlane) -> Release:
    """A release in a namespace with the restricted Pod Security level and a volume for the results."""
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
    release = Release(real_plane, "bench")
    release.create_namespace(labels)
    real_plane.apply(_volume(real_plane))
    return release


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


def start_run(release: Release, values: Object, pool: str) -> None:
    """Start new runs with changed values, and wait until the run of a pool measures."""
    before = frozenset(item["run"]["id"] for item in release.fetch("/api/v1/runs?limit=200")["runs"])
    release.upgrade(values)
    wait_until(f"a new run of pool {pool} measures", lambda: release.phases(pool, before), RUN)


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


def test_helm_3_installs_the_chart_and_both_pools_complete(real_plane: ControlPlane) -> None:
    release = Release(real_plane, "bench-3", "helm-3")
    release.create_namespace()
    release.upgrade(volatile_values())
    wait_until("both Jobs have ended", release.ended, RUN)
    items = results(release)
    assert sorted((result["pool"], result["status"]) for result in items) == [("one", "complete"), ("two", "complete")]
    release.helm("uninstall", "devbench")


def test_an_unchanged_script_comes_from_a_config_map(real_plane: ControlPlane) -> None:
    release = Release(real_plane, "script")
    release.create_namespace()
    script = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "train-1"}, "data": {"train.py": SCRIPT}}
    real_plane.kubectl("apply", "-n", release.namespace, "-f", "-", stdin=json.dumps(script))
    custom = {"train": {"configMap": {"name": "train-1"}}}
    release_values = volatile_values(workloads=["train"], customWorkloads=custom)
    release_values["pools"] = {"cpu": None, "t4": None, "one": {"cpu": 1}}
    release.upgrade(release_values)
    wait_until("the Job has ended", release.ended, RUN)
    (item,) = results(release)
    document = release.fetch(f"/api/v1/results/{item['id']}")
    assert document["status"] == "complete", document["failure"]
    assert document["recognition"]["chosen"]["kind"] == "fit", document["recognition"]
    release.helm("uninstall", "devbench")


def test_a_run_on_a_node_that_lacks_its_claimed_gpu_fails_with_the_cause(real_plane: ControlPlane, cuda: str) -> None:
    real_node.load(real_plane, cuda, f"docker.io/library/devbench:{__version__}-cuda")
    claim = '[{"op":"add","path":"/status/capacity/nvidia.com~1gpu","value":"1"}]'
    real_plane.kubectl("patch", "node", real_node.NAME, "--subresource=status", "--type=json", "-p", claim)
    release = Release(real_plane, "bench-gpu")
    release.create_namespace()
    release_values = volatile_values(workloads=["matmul"], customWorkloads={})
    release_values["pools"] = {"cpu": None, "t4": None, "gpu": {"backend": "cuda", "preset": "none", "cpu": 1}}
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
