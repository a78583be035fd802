"""Several workers on simulated nodes: the real scheduler gives each a node, and runs one run of a pool at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from control_plane import HOLD, ControlPlane, Object, wait_until
from nodes import node
from rendering import TOKEN, objects, text

pytestmark = [pytest.mark.once, pytest.mark.needs("control-plane"), pytest.mark.timeout(1800)]

NODES = tuple(f"scaling-{letter}" for letter in "abc")
POOL: Object = {
    "preset": "none",
    "nodeSelector": {"pool": "scaling"},
    "cpu": 1,
    "memory": "1Gi",
    "exclusiveNode": False,
    "podAnnotations": {HOLD: "1"},
}
"""A pool on these nodes. Each has room for three runs, so only the anti-affinity keeps workers apart."""


@pytest.fixture
def namespace(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace, and three nodes."""
    name = f"w{abs(hash(request.node.nodeid)) % 10**8}"
    plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    plane.apply(*(node(item, {"pool": "scaling"}) for item in NODES))
    yield name
    plane.clear(name)
    plane.kubectl("delete", "nodes", *NODES)


def install(plane: ControlPlane, namespace: str, **pool: object) -> None:
    """Create the Jobs and Services of a pool."""
    pools = {"cpu": None, "t4": None, "own": {**POOL, **pool}}
    for item in objects(text(values={**TOKEN, "workloads": ["cifar"], "pools": pools})):
        if item["metadata"]["labels"]["app.kubernetes.io/component"] == "run":
            item["metadata"]["namespace"] = namespace
            plane.kubectl("create", "--validate=strict", "-n", namespace, "-f", "-", stdin=json.dumps(item))


def bound(plane: ControlPlane, namespace: str) -> list[Object]:
    """Return the pods that have a node and have not ended."""
    pods = plane.get("pods", "-n", namespace)
    return [pod for pod in pods if pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending"]


def size(pod: Object) -> int:
    """Return how many workers the run of a pod has."""
    words = pod["spec"]["containers"][0]["args"]
    return int(words[words.index("--workers") + 1])


def test_two_workers_run_on_two_nodes_and_have_the_names_that_they_are_told(
    plane: ControlPlane, namespace: str
) -> None:
    install(plane, namespace, workers=[2])

    def both() -> list[Object] | None:
        pods = bound(plane, namespace)
        return pods if len(pods) == 2 else None

    pods = wait_until("both workers have a node", both)
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 2
    (job,) = plane.get("jobs", "-n", namespace)
    (words,) = {tuple(pod["spec"]["containers"][0]["args"]) for pod in pods}
    hosts = words[words.index("--hosts") + 1].replace("$(DEVBENCH_JOB_NAME)", job["metadata"]["name"])
    assert sorted(f"{pod['spec']['hostname']}.{pod['spec']['subdomain']}" for pod in pods) == hosts.split(",")

    def addressed() -> bool:
        slices = plane.get("endpointslices", "-n", namespace)
        (service,) = {item["metadata"]["labels"]["kubernetes.io/service-name"] for item in slices} or {""}
        return bool(service == hosts.split(".")[-1])

    wait_until("the Service selects the workers", addressed)


def test_a_second_run_waits_until_all_workers_of_the_first_have_ended(plane: ControlPlane, namespace: str) -> None:
    """Otherwise, runs of two and of three workers could share three nodes, and none would ever be complete."""
    install(plane, namespace, workers=[3, 1, 2])
    ended: set[int] = set()
    while len(ended) < 3:
        pods = wait_until("all workers of one run have a node", lambda: _complete(bound(plane, namespace)))
        (workers,) = {size(pod) for pod in pods}
        assert workers not in ended
        assert len({pod["spec"]["nodeName"] for pod in pods}) == workers
        waiting = [pod for pod in plane.get("pods", "-n", namespace) if not pod["spec"].get("nodeName")]
        assert len(ended | {size(pod) for pod in waiting} | {workers}) == 3, "the other runs wait"
        ended.add(workers)
        for pod in pods:
            _succeed(plane, namespace, pod)


def _complete(pods: list[Object]) -> list[Object] | None:
    """Return the pods if they are all workers of one run.

    Raises:
        AssertionError: workers of two runs have a node.
    """
    sizes = {size(pod) for pod in pods}
    assert len(sizes) <= 1, f"runs of {sizes} workers have nodes at the same time"
    return pods if sizes == {len(pods)} else None


def _succeed(plane: ControlPlane, namespace: str, pod: Object) -> None:
    name, patch = pod["metadata"]["name"], json.dumps({"status": {"phase": "Succeeded"}})
    plane.kubectl("patch", "pod", name, "-n", namespace, "--subresource=status", "--type=merge", "-p", patch)
