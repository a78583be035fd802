"""The real watcher between a real API server and a real hub: what no pod can report is told there, within 15 seconds.

The pods are held on nodes that don't exist, and the tests write into their status what a kubelet would.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import urllib3
from nodes import node
from plane import HOLD, Object, Plane, until
from rendering import CHART, helm
from watching import TOKEN, hub_in, watching

from bench.model.run_state import MESSAGE_VERSION

pytestmark = [pytest.mark.once, pytest.mark.needs("control-plane"), pytest.mark.timeout(1800)]

SOON = 15.0
"""Seconds within which the hub must know."""


@dataclass
class Stage:
    """A release whose watcher is real, in a namespace of its own."""

    plane: Plane
    namespace: str
    hub: str

    def pod(self, pool: str, evictions: str = "") -> Object:
        """The pod of a pool, once it is there; after some evictions, if that is asked."""

        def look() -> Object | None:
            for each in self.plane.get("pods", "-n", self.namespace, "-l", f"devbench/pool={pool}"):
                counted = each["metadata"]["annotations"].get("batch.kubernetes.io/job-index-ignored-failure-count", "")
                if counted == evictions and each["status"]["phase"] == "Pending" and each["spec"].get("nodeName"):
                    return each
            return None

        return until(f"the pod of {pool} is bound", look)

    def becomes(self, pod: Object, **status: Any) -> None:
        """Writes what a kubelet would write."""
        name, patch = pod["metadata"]["name"], json.dumps({"status": status})
        self.plane.kubectl(
            "patch", "pod", name, "-n", self.namespace, "--subresource=status", "--type=merge", "-p", patch
        )

    def run(self, pool: str, fits: Callable[[Object], bool], workload: str = "cifar") -> Object:
        """The run of a pool as the hub tells it, as soon as it fits."""

        def look() -> Object | None:
            answer = urllib3.request("GET", f"{self.hub}/api/v1/runs?limit=500")
            for told in answer.json()["runs"]:
                ours = told["run"]["pool"] == pool and told["run"]["title"] == workload
                if ours and fits(told):
                    return dict(told["run"])
            return None

        return until(f"the hub knows it of {workload} on {pool}", look, SOON)

    def waits(self, pool: str, reason: str, workload: str = "cifar") -> Object:
        """The run of a pool that waits for a reason."""
        return self.run(pool, lambda told: reason in ((told["run"].get("progress") or {}).get("note") or ""), workload)

    def ended(self, pool: str, state: str, reason: str, workload: str = "cifar") -> Object:
        """The run of a pool that ended."""
        return self.run(pool, lambda told: told["state"] == state and reason in told["run"]["reason"], workload)


HELD = {HOLD: "1"}
POOLS = ("image", "container", "memory", "evicted", "deadline", "absent", "spot")


def values() -> Object:
    """Pools on nodes of their own, one for each misfortune."""
    own: Object = {
        name: {"preset": "none", "nodeSelector": {"pool": name}, "cpu": 1, "podAnnotations": HELD} for name in POOLS
    }
    own["nowhere"] = {"preset": "none", "nodeSelector": {"pool": "nowhere"}}
    own["late"] = {"preset": "none", "nodeSelector": {"pool": "late"}, "podAnnotations": HELD, "jobSeconds": 1}
    own["held"] = {"preset": "none", "nodeSelector": {"pool": "held"}, "podAnnotations": HELD, "queue": "benchmarks"}
    return {
        "workloads": ["cifar", "mnist"],
        "pools": {"cpu": None, "t4": None, **own},
        "poolDefaults": {"memory": "1Gi", "ephemeralStorage": "1Gi"},
        "hub": {"auth": {"existingSecret": "devbench-token"}},
    }


@pytest.fixture(scope="module")
def stage(plane: Plane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The release, its hub and its watcher."""
    name, folder = "watched", tmp_path_factory.mktemp("watched")
    plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    plane.apply(*(node(f"own-{pool}", {"pool": pool}) for pool in (*POOLS, "late", "held")))
    given = folder / "values.json"
    given.write_text(json.dumps(values()), encoding="utf-8")
    helm("helm-4", "install", "devbench", str(CHART), "-n", name, "--values", str(given), kubeconfig=plane.kubeconfig)
    with hub_in(folder) as url, watching(plane, name, url, folder):
        yield Stage(plane, name, url)
    helm("helm-4", "uninstall", "devbench", "-n", name, kubeconfig=plane.kubeconfig)
    plane.clear(name)
    plane.kubectl("delete", "nodes", *(f"own-{pool}" for pool in (*POOLS, "late", "held")))


def test_a_pool_without_nodes_waits_with_the_schedulers_reason(stage: Stage) -> None:
    run = stage.waits("nowhere", "Unschedulable: 0/")
    assert run["progress"]["phase"] == "waiting"
    assert run["node"] is None


def test_a_pod_whose_image_cannot_be_pulled_is_reported_as_waiting(stage: Stage) -> None:
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "devbench:cpu"'}
    stage.becomes(stage.pod("image"), containerStatuses=[_container(waiting=waiting)])
    assert stage.waits("image", "ImagePullBackOff: Back-off pulling image")["node"] == "own-image"


def test_a_pod_whose_container_cannot_start_is_reported_as_waiting(stage: Stage) -> None:
    waiting = {"reason": "CreateContainerError", "message": "failed to mount"}
    stage.becomes(stage.pod("container"), containerStatuses=[_container(waiting=waiting)])
    stage.waits("container", "CreateContainerError: failed to mount")


def test_a_run_that_is_killed_for_memory_is_reported_as_failed(stage: Stage) -> None:
    pod = stage.pod("memory")
    run = _running(stage, pod)
    stage.becomes(
        pod, phase="Failed", containerStatuses=[_container(terminated={"reason": "OOMKilled", "exitCode": 137})]
    )
    failed = stage.ended("memory", "failed", "OOMKilled: it needed more memory than 1Gi (pools.memory.memory)")
    assert (failed["id"], failed["attempt"]) == (run["id"], run["attempt"])


def test_the_run_of_an_evicted_pod_is_interrupted_and_superseded_by_its_next_attempt(stage: Stage) -> None:
    pod = stage.pod("evicted")
    first = _running(stage, pod)
    target = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": "low on disk"}
    stage.becomes(pod, phase="Failed", reason="Evicted", conditions=[target])
    stage.ended("evicted", "interrupted", "TerminationByKubelet: low on disk")
    second = _running(stage, stage.pod("evicted", evictions="1"))
    assert second["id"] == first["id"]
    assert second["attempt"] > first["attempt"]
    told = stage.run("evicted", lambda told: told["run"]["attempt"] == second["attempt"])
    assert told["state"] == "running"


def test_a_pod_past_its_deadline_is_reported_as_failed(stage: Stage) -> None:
    stage.becomes(stage.pod("deadline"), phase="Failed", reason="DeadlineExceeded", message="longer than 7200")
    stage.ended("deadline", "failed", "DeadlineExceeded: longer than 7200")


def test_a_job_past_its_deadline_fails_all_its_runs(stage: Stage) -> None:
    for workload in ("cifar", "mnist"):
        stage.ended("late", "failed", "DeadlineExceeded", workload)


def test_a_missing_device_is_reported_as_the_reason_for_all_runs_of_its_job(stage: Stage) -> None:
    ended = {"reason": "Error", "exitCode": 3, "message": "error: no NVIDIA driver\n"}
    stage.becomes(stage.pod("absent"), phase="Failed", containerStatuses=[_container(terminated=ended)])
    stage.ended("absent", "failed", "Error: exit code 3: no NVIDIA driver")
    stage.ended("absent", "failed", "PodFailurePolicy: ", "mnist")


def test_a_job_that_a_queue_holds_is_reported_as_waiting(stage: Stage) -> None:
    (job,) = stage.plane.get("jobs", "-n", stage.namespace, "-l", "devbench/pool=held")
    stage.plane.kubectl(
        "patch", "job", job["metadata"]["name"], "-n", stage.namespace, "--type=merge", "-p",
        '{"spec":{"suspend":true}}',
    )  # fmt: skip
    stage.waits("held", "Suspended: held by queue benchmarks", "mnist")


def test_a_job_whose_pods_exceed_a_quota_is_reported_as_waiting(stage: Stage) -> None:
    (job,) = stage.plane.get("jobs", "-n", stage.namespace, "-l", "devbench/pool=spot")
    quota: Object = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": "0"}}}
    stage.plane.apply({**quota, "metadata": {"name": "none", "namespace": stage.namespace}})
    until("the quota counts", lambda: _counted(stage))
    new = {**job, "metadata": {**job["metadata"], "name": "devbench-quota-00000000"}, "status": {}}
    for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "ownerReferences"):
        new["metadata"].pop(key, None)
    new["metadata"]["labels"] = {**new["metadata"]["labels"], "devbench/pool": "quota"}
    new["spec"].pop("selector", None)
    for key in list(new["spec"]["template"]["metadata"]["labels"]):
        if "controller-uid" in key or "job-name" in key:
            del new["spec"]["template"]["metadata"]["labels"][key]
    stage.plane.kubectl("create", "-n", stage.namespace, "-f", "-", given=json.dumps(new))
    stage.waits("quota", "FailedCreate: ")
    stage.plane.kubectl("delete", "resourcequota", "none", "-n", stage.namespace)


def test_the_service_account_of_the_watcher_can_only_read_pods_jobs_and_events(stage: Stage) -> None:
    who = f"--as=system:serviceaccount:{stage.namespace}:devbench-watcher"
    for verb, what, may in [
        ("list", "pods", "yes"), ("watch", "jobs.batch", "yes"), ("list", "events", "yes"), ("delete", "pods", "no"),
        ("get", "secrets", "no"), ("create", "jobs.batch", "no"), ("get", "pods --subresource=log", "no"),
    ]:  # fmt: skip
        said = stage.plane.kubectl("auth", "can-i", verb, *what.split(), who, "-n", stage.namespace, check=False)
        assert said.strip().endswith(may), (verb, what, said)
    assert stage.plane.kubectl("auth", "can-i", "list", "pods", who, "-n", "default", check=False).strip() == "no"


def _running(stage: Stage, pod: Object) -> Object:
    """Plays a pod that runs and tells the hub so itself, by the id and attempt that the chart gives it."""
    stage.becomes(pod, phase="Running", containerStatuses=[_container(running={})])
    labels, notes = pod["metadata"]["labels"], pod["metadata"]["annotations"]
    given = {
        "DEVBENCH_JOB": labels["batch.kubernetes.io/job-name"],
        "DEVBENCH_JOB_UID": labels["batch.kubernetes.io/controller-uid"],
        "JOB_COMPLETION_INDEX": notes["batch.kubernetes.io/job-completion-index"],
        "DEVBENCH_EVICTIONS": notes.get("batch.kubernetes.io/job-index-ignored-failure-count", ""),
    }
    told = {each["name"]: each.get("value", "") for each in pod["spec"]["containers"][0]["env"]}
    state = {
        "schema_version": MESSAGE_VERSION,
        "id": _expanded(told["DEVBENCH_RUN_ID"], given),
        "attempt": int(_expanded(told["DEVBENCH_ATTEMPT"], given)),
        "state": "running",
        "title": "cifar",
        "started": "2026-11-22T05:00:00Z",
        "devbench": "0.1.0",
        "pool": labels["devbench/pool"],
        "node": pod["spec"]["nodeName"],
    }
    answer = urllib3.request(
        "PUT",
        f"{stage.hub}/api/v1/runs/{state['id']}",
        body=json.dumps(state),
        headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
    )
    assert answer.status == 200, answer.data
    assert answer.json()["outcome"] in ("created", "updated")
    return state


def _expanded(text: str, given: dict[str, str]) -> str:
    for name, value in given.items():
        text = text.replace(f"$({name})", value)
    return text


def _container(**state: Any) -> Object:
    return {
        "name": "devbench",
        "image": "devbench:cpu",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": state,
    }


def _counted(stage: Stage) -> bool:
    (quota,) = stage.plane.get("resourcequotas", "-n", stage.namespace)
    return "hard" in quota.get("status", {})
