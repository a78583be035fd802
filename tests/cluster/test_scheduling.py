"""The nodes that the real scheduler chooses for the chart's pods, among nodes as on GKE, AKS and EKS."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from control_plane import ControlPlane, Object, wait_until
from rendering import DEFAULTS, jobs, merge, objects, text

pytestmark = [pytest.mark.once, pytest.mark.needs("control-plane"), pytest.mark.timeout(1800)]


@pytest.fixture
def release(clouds: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Release]:
    """A release in its own namespace, which is deleted at the end."""
    name = f"s{abs(hash(request.node.nodeid)) % 10**8}"
    clouds.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield Release(clouds, name)
    clouds.clear(name)


class Release:
    """The Jobs of the chart in a namespace."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane = plane
        self.namespace = namespace

    def install(self, values: Object) -> None:
        """Create the Jobs that the chart renders with these values."""
        manifests = text(values=merge(DEFAULTS, {"workloads": ["cifar"], **values}))
        for job in jobs(objects(manifests)).values():
            job["metadata"]["namespace"] = self.namespace
            self.plane.kubectl("apply", "-n", self.namespace, "-f", "-", stdin=json.dumps(job))

    def nodes(self, count: int) -> dict[str, str]:
        """Wait until `count` pods are bound, and return their nodes by pool."""

        def bound() -> dict[str, str] | None:
            nodes = {
                pod["metadata"]["labels"]["devbench/pool"]: pod["spec"]["nodeName"]
                for pod in self.plane.get("pods", "-n", self.namespace)
                if pod["spec"].get("nodeName")
            }
            return nodes if len(nodes) >= count else None

        return wait_until(f"{count} pods are bound", bound)

    def refusal(self, pool: str) -> str:
        """Wait until the scheduler cannot place the pod of a pool, and return its message."""

        def message() -> str | None:
            for pod in self.plane.get("pods", "-n", self.namespace, "-l", f"devbench/pool={pool}"):
                for condition in pod["status"].get("conditions", []):
                    if condition["type"] == "PodScheduled" and condition["status"] == "False":
                        return str(condition.get("message"))
            return None

        return wait_until(f"the scheduler gives a reason for {pool}", message)


@pytest.mark.parametrize(
    ("preset", "cpu", "t4"),
    [
        ("gke", {"gke-cpu"}, {"gke-t4", "gke-t4-bare"}),
        ("aks", {"aks-cpu"}, {"aks-t4"}),
        ("eks", {"eks-cpu"}, {"eks-t4", "eks-t4-unlabelled"}),
        ("generic", {"gke-cpu", "aks-cpu", "eks-cpu", "generic-cpu"}, {"generic-t4", "eks-t4"}),
    ],
)
def test_each_preset_selects_only_its_nodes(release: Release, preset: str, cpu: set[str], t4: set[str]) -> None:
    release.install({"poolDefaults": {"preset": preset}})
    nodes = release.nodes(2)
    assert nodes["cpu"] in cpu
    assert nodes["t4"] in t4


def test_two_runs_never_share_a_node(release: Release) -> None:
    pools = {
        f"cpu{n}": {"cpu": 1, "memory": "1Gi", "preset": "aks", "podAnnotations": {"test/hold": "1"}} for n in (1, 2)
    }
    release.install({"pools": {"cpu": None, "t4": None, **pools}})
    assert len(release.nodes(1)) == 1
    (unscheduled,) = set(pools) - set(release.nodes(1))
    assert "anti-affinity" in release.refusal(unscheduled)


def test_a_shared_gpu_is_used_only_if_the_pool_allows_it(release: Release) -> None:
    pool = {"backend": "cuda", "accelerator": "t4", "podAnnotations": {"test/hold": "1"}}
    pools = {f"t4{letter}": pool for letter in "abcd"}
    release.install({"pools": {"cpu": None, "t4": None, **pools}})
    nodes = release.nodes(2)
    assert set(nodes.values()) == {"generic-t4", "eks-t4"}
    (unscheduled, *_) = set(pools) - set(nodes)
    assert "affinity" in release.refusal(unscheduled)
    release.install({"pools": {"cpu": None, "t4": None, "shared": {**pool, "allowSharedGpu": True}}})
    assert release.nodes(3)["shared"] in {"generic-t4-sliced", "generic-t4-mps"}


def test_a_spot_node_is_used_only_if_the_pool_allows_it(release: Release) -> None:
    pool = {"backend": "cuda", "accelerator": "t4", "preset": "aks", "podAnnotations": {"test/hold": "1"}}
    release.install({"pools": {"cpu": None, "t4": None, "own": pool, "other": pool}})
    nodes = release.nodes(1)
    assert set(nodes.values()) == {"aks-t4"}
    (unscheduled,) = {"own", "other"} - set(nodes)
    assert "taint" in release.refusal(unscheduled)
    release.install({"pools": {"cpu": None, "t4": None, "cheap": {**pool, "spot": True}}})
    assert release.nodes(2)["cheap"] == "aks-t4-spot"


def test_the_scheduler_gives_a_reason_for_a_pool_without_nodes(release: Release) -> None:
    release.install({"pools": {"cpu": None, "t4": None, "a10g": {"backend": "cuda", "accelerator": "a10g"}}})
    assert "nodes are available" in release.refusal("a10g")


def test_a_node_with_too_few_cpus_is_not_used(release: Release) -> None:
    release.install(
        {
            "pools": {
                "cpu": {"preset": "none", "nodeSelector": {"kubernetes.io/hostname": "generic-small"}},
                "t4": None,
            }
        }
    )
    assert "Insufficient cpu" in release.refusal("cpu")


def test_a_job_completes_all_its_workloads(release: Release) -> None:
    release.install({"workloads": ["cifar", "mnist", "matmul"], "pools": {"t4": None}})

    def completed() -> Object | None:
        (job,) = release.plane.get("jobs", "-n", release.namespace)
        return job if job["status"].get("succeeded") == 3 else None

    assert wait_until("all three workloads have ended", completed)["status"]["completedIndexes"] == "0-2"
