"""Where the real scheduler puts the chart's pods, among nodes as GKE, AKS and EKS have them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from plane import Object, Plane, until
from rendering import TOKEN, jobs, objects, text

pytestmark = [pytest.mark.once, pytest.mark.needs("control-plane"), pytest.mark.timeout(1800)]


@pytest.fixture
def place(clouds: Plane, request: pytest.FixtureRequest) -> Iterator[Place]:
    """A namespace of its own, emptied in the end."""
    name = f"s{abs(hash(request.node.nodeid)) % 10**8}"
    clouds.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield Place(clouds, name)
    clouds.clear(name)


class Place:
    """Jobs of the chart, installed for their pods' sake."""

    def __init__(self, plane: Plane, namespace: str) -> None:
        self.plane = plane
        self.namespace = namespace

    def install(self, values: Object) -> None:
        """Makes the Jobs of a chart with these values."""
        written = text(values={**TOKEN, "workloads": ["cifar"], **values})
        for each in jobs(objects(written)).values():
            each["metadata"]["namespace"] = self.namespace
            self.plane.kubectl("apply", "-n", self.namespace, "-f", "-", given=json.dumps(each))

    def nodes(self, count: int) -> dict[str, str]:
        """Pool: the node that its pod was bound to, once so many are."""

        def bound() -> dict[str, str] | None:
            found = {
                each["metadata"]["labels"]["devbench/pool"]: each["spec"]["nodeName"]
                for each in self.plane.get("pods", "-n", self.namespace)
                if each["spec"].get("nodeName")
            }
            return found if len(found) >= count else None

        return until(f"{count} pods are bound", bound)

    def refusal(self, pool: str) -> str:
        """What the scheduler says of a pool's pod that fits nowhere."""

        def said() -> str | None:
            for each in self.plane.get("pods", "-n", self.namespace, "-l", f"devbench/pool={pool}"):
                for condition in each["status"].get("conditions", []):
                    if condition["type"] == "PodScheduled" and condition["status"] == "False":
                        return str(condition.get("message"))
            return None

        return until(f"the scheduler says why {pool} fits nowhere", said)


@pytest.mark.parametrize(
    ("preset", "cpu", "t4"),
    [
        ("gke", {"gke-cpu"}, {"gke-t4", "gke-t4-bare"}),
        ("aks", {"aks-cpu"}, {"aks-t4"}),
        ("eks", {"eks-cpu"}, {"eks-t4", "eks-t4-unlabelled"}),
        ("generic", {"gke-cpu", "aks-cpu", "eks-cpu", "generic-cpu"}, {"generic-t4", "eks-t4"}),
    ],
)
def test_each_preset_selects_only_its_nodes(place: Place, preset: str, cpu: set[str], t4: set[str]) -> None:
    place.install({"poolDefaults": {"preset": preset}})
    found = place.nodes(2)
    assert found["cpu"] in cpu
    assert found["t4"] in t4


def test_two_runs_never_share_a_node(place: Place) -> None:
    pools = {
        f"cpu{n}": {"cpu": 1, "memory": "1Gi", "preset": "aks", "podAnnotations": {"test/hold": "1"}} for n in (1, 2)
    }
    place.install({"pools": {"cpu": None, "t4": None, **pools}})
    assert len(place.nodes(1)) == 1
    (other,) = set(pools) - set(place.nodes(1))
    assert "anti-affinity" in place.refusal(other)


def test_a_shared_gpu_is_used_only_if_the_pool_allows_it(place: Place) -> None:
    pool = {"backend": "cuda", "accelerator": "t4", "podAnnotations": {"test/hold": "1"}}
    several = {f"t4{letter}": pool for letter in "abcd"}
    place.install({"pools": {"cpu": None, "t4": None, **several}})
    found = place.nodes(2)
    assert set(found.values()) == {"generic-t4", "eks-t4"}
    (one, *_) = set(several) - set(found)
    assert "affinity" in place.refusal(one)
    place.install({"pools": {"cpu": None, "t4": None, "shared": {**pool, "allowSharedGpu": True}}})
    assert place.nodes(3)["shared"] in {"generic-t4-sliced", "generic-t4-mps"}


def test_a_spot_node_is_used_only_if_the_pool_allows_it(place: Place) -> None:
    pool = {"backend": "cuda", "accelerator": "t4", "preset": "aks", "podAnnotations": {"test/hold": "1"}}
    place.install({"pools": {"cpu": None, "t4": None, "own": pool, "other": pool}})
    found = place.nodes(1)
    assert set(found.values()) == {"aks-t4"}
    (left,) = {"own", "other"} - set(found)
    assert "taint" in place.refusal(left)
    place.install({"pools": {"cpu": None, "t4": None, "cheap": {**pool, "spot": True}}})
    assert place.nodes(2)["cheap"] == "aks-t4-spot"


def test_the_scheduler_gives_a_reason_for_a_pool_without_nodes(place: Place) -> None:
    place.install({"pools": {"cpu": None, "t4": None, "a10g": {"backend": "cuda", "accelerator": "a10g"}}})
    assert "nodes are available" in place.refusal("a10g")


def test_a_node_with_too_few_cpus_is_not_used(place: Place) -> None:
    place.install(
        {
            "pools": {
                "cpu": {"preset": "none", "nodeSelector": {"kubernetes.io/hostname": "generic-small"}},
                "t4": None,
            }
        }
    )
    assert "Insufficient cpu" in place.refusal("cpu")


def test_a_job_completes_all_its_workloads(place: Place) -> None:
    place.install({"workloads": ["cifar", "mnist", "matmul"], "pools": {"t4": None}})

    def done() -> Object | None:
        (job,) = place.plane.get("jobs", "-n", place.namespace)
        return job if job["status"].get("succeeded") == 3 else None

    assert until("all three are done", done)["status"]["completedIndexes"] == "0-2"
