"""A real watcher, API server and hub: the watcher reports within 15 seconds what no pod can report.

The pods are bound to simulated nodes and held there. The tests write their status as a kubelet would.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import urllib3
from control_plane import HOLD, ControlPlane, Object, wait_until
from hub_and_watcher import TOKEN, run_hub, run_watcher
from nodes import node
from rendering import CHART, helm

from bench.model.run_state import MESSAGE_VERSION

pytestmark = [pytest.mark.once, pytest.mark.needs("control-plane"), pytest.mark.timeout(1800)]

REPORT_SECONDS = 15.0
"""Time limit for a report to reach the hub, in seconds."""


@dataclass
class WatchedRelease:
    """A release with a real watcher, in its own namespace."""

    plane: ControlPlane
    namespace: str
    hub: str

    def pod(self, pool: str, evictions: str = "0") -> Object:
        """Wait until the pod of a pool is bound after this number of evictions, and return it."""

        def look() -> Object | None:
            for pod in self.plane.get("pods", "-n", self.namespace, "-l", f"devbench/pool={pool}"):
                count = pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"]
                if count == evictions and pod["status"]["phase"] == "Pending" and pod["spec"].get("nodeName"):
                    return pod
            return None

        return wait_until(f"the pod of {pool} is bound", look)

    def set_status(self, pod: Object, **status: Any) -> None:
        """Write the status of a pod as a kubelet would."""
        name, patch = pod["metadata"]["name"], json.dumps({"status": status})
        self.plane.kubectl(
            "patch", "pod", name, "-n", self.namespace, "--subresource=status", "--type=merge", "-p", patch
        )

    def run(self, pool: str, condition: Callable[[Object], bool], workload: str = "cifar") -> Object:
        """Wait until the hub has a run of a pool that meets a condition, and return it."""

        def look() -> Object | None:
            response = urllib3.request("GET", f"{self.hub}/api/v1/runs?limit=500")
            for item in response.json()["runs"]:
                matches = item["run"]["pool"] == pool and item["run"]["title"] == workload
                if matches and condition(item):
                    return dict(item["run"])
            return None

        return wait_until(f"the hub has the expected state of {workload} on {pool}", look, REPORT_SECONDS)

    def wait_for_reason(self, pool: str, reason: str, workload: str = "cifar") -> Object:
        """Wait until the run of a pool waits for a reason, and return it."""
        return self.run(pool, lambda item: reason in ((item["run"].get("progress") or {}).get("note") or ""), workload)

    def wait_for_end(self, pool: str, state: str, reason: str, workload: str = "cifar") -> Object:
        """Wait until the run of a pool has ended, and return it."""
        return self.run(pool, lambda item: item["state"] == state and reason in item["run"]["reason"], workload)


HELD = {HOLD: "1"}
POOLS = ("image", "container", "memory", "evicted", "deadline", "absent", "spot", "again")
NODES = (*POOLS, "late", "held", "scaling")
"""Pools that have a node."""


def values() -> Object:
    """Return values with one pool, on its own node, for each failure."""
    pools: Object = {
        name: {"preset": "none", "nodeSelector": {"pool": name}, "cpu": 1, "podAnnotations": HELD} for name in POOLS
    }
    # Two workers, but only one node.
    pools["scaling"] = {"preset": "none", "nodeSelector": {"pool": "scaling"}, "podAnnotations": HELD, "workers": [2]}
    pools["paused"] = {"preset": "none", "nodeSelector": {"pool": "paused"}}
    pools["nowhere"] = {"preset": "none", "nodeSelector": {"pool": "nowhere"}}
    pools["late"] = {"preset": "none", "nodeSelector": {"pool": "late"}, "podAnnotations": HELD, "jobSeconds": 1}
    pools["held"] = {"preset": "none", "nodeSelector": {"pool": "held"}, "podAnnotations": HELD, "queue": "benchmarks"}
    return {
        "workloads": ["cifar", "mnist"],
        "pools": {"cpu": None, "t4": None, **pools},
        "poolDefaults": {"memory": "1Gi", "ephemeralStorage": "1Gi"},
        "hub": {"auth": {"existingSecret": "devbench-token"}},
    }


@pytest.fixture(scope="module")
def release(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedRelease]:
    """A release with a hub and a watcher."""
    name, folder = "watched", tmp_path_factory.mktemp("watched")
    plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    plane.apply(*(node(f"own-{pool}", {"pool": pool}) for pool in NODES))
    values_file = folder / "values.json"
    values_file.write_text(json.dumps(values()), encoding="utf-8")
    helm(
        "helm-4",
        "install",
        "devbench",
        str(CHART),
        "-n",
        name,
        "--values",
        str(values_file),
        kubeconfig=plane.kubeconfig,
    )
    with run_hub(folder) as url, run_watcher(plane, name, url, folder):
        yield WatchedRelease(plane, name, url)
    helm("helm-4", "uninstall", "devbench", "-n", name, kubeconfig=plane.kubeconfig)
    plane.clear(name)
    plane.kubectl("delete", "nodes", *(f"own-{pool}" for pool in NODES))


def test_a_pool_without_nodes_waits_with_the_schedulers_reason(release: WatchedRelease) -> None:
    run = release.wait_for_reason("nowhere", "Unschedulable: 0/")
    assert run["progress"]["phase"] == "waiting"
    assert run["node"] is None
    release.wait_for_reason("nowhere", "Queued: behind cifar, which waits: Unschedulable: 0/", "mnist")


def test_a_worker_without_a_node_is_named_and_the_other_run_of_its_pool_is_queued(release: WatchedRelease) -> None:
    def bound() -> Object | None:
        pods = release.plane.get("pods", "-n", release.namespace, "-l", "devbench/pool=scaling")
        return next((pod for pod in pods if pod["spec"].get("nodeName")), None)

    pod = wait_until("a worker has a node", bound)
    workload = pod["spec"]["containers"][0]["args"][1]
    missing = 1 - int(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])
    run = release.wait_for_reason("scaling", f"Waiting for worker {missing}: Unschedulable: 0/", workload)
    assert run["id"].endswith(".0")
    (other,) = {"cifar", "mnist"} - {workload}
    release.wait_for_reason("scaling", f"Queued: behind {workload} with 2 workers", other)


def test_a_job_that_is_suspended_after_it_was_unschedulable_and_then_deleted_is_reported(
    release: WatchedRelease,
) -> None:
    release.wait_for_reason("paused", "Unschedulable: 0/")
    (job,) = release.plane.get("jobs", "-n", release.namespace, "-l", "devbench/pool=paused")
    name = job["metadata"]["name"]
    release.plane.kubectl(
        "patch", "job", name, "-n", release.namespace, "--type=merge", "-p", '{"spec":{"suspend":true}}'
    )
    release.wait_for_reason("paused", "Suspended: spec.suspend is true")
    release.wait_for_reason("paused", "Suspended: spec.suspend is true", "mnist")
    release.plane.kubectl("delete", "job", name, "-n", release.namespace)
    for workload in ("cifar", "mnist"):
        release.wait_for_end("paused", "interrupted", "JobDeleted", workload)


def test_an_evicted_run_that_a_quota_keeps_from_starting_again_is_reported(release: WatchedRelease) -> None:
    pod = release.pod("again")
    _report_running(release, pod)
    with _no_more_pods(release):
        target = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        release.set_status(pod, phase="Failed", conditions=[target])
        release.wait_for_reason("again", "FailedCreate: ")


def test_a_pod_whose_image_cannot_be_pulled_is_reported_as_waiting(release: WatchedRelease) -> None:
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "devbench:cpu"'}
    release.set_status(release.pod("image"), containerStatuses=[_container(waiting=waiting)])
    assert release.wait_for_reason("image", "ImagePullBackOff: Back-off pulling image")["node"] == "own-image"


def test_a_pod_whose_container_cannot_start_is_reported_as_waiting(release: WatchedRelease) -> None:
    waiting = {"reason": "CreateContainerError", "message": "failed to mount"}
    release.set_status(release.pod("container"), containerStatuses=[_container(waiting=waiting)])
    release.wait_for_reason("container", "CreateContainerError: failed to mount")


def test_a_run_that_is_killed_for_memory_is_reported_as_failed(release: WatchedRelease) -> None:
    pod = release.pod("memory")
    run = _report_running(release, pod)
    release.set_status(
        pod, phase="Failed", containerStatuses=[_container(terminated={"reason": "OOMKilled", "exitCode": 137})]
    )
    failed = release.wait_for_end(
        "memory", "failed", "OOMKilled: the run needed more memory than 1Gi (pools.memory.memory)"
    )
    assert (failed["id"], failed["attempt"]) == (run["id"], run["attempt"])


def test_the_run_of_an_evicted_pod_is_interrupted_and_superseded_by_its_next_attempt(release: WatchedRelease) -> None:
    pod = release.pod("evicted")
    first = _report_running(release, pod)
    target = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": "low on disk"}
    release.set_status(pod, phase="Failed", reason="Evicted", conditions=[target])
    release.wait_for_end("evicted", "interrupted", "TerminationByKubelet: low on disk")
    second = _report_running(release, release.pod("evicted", evictions="1"))
    assert second["id"] == first["id"]
    assert second["attempt"] > first["attempt"]
    run = release.run("evicted", lambda run: run["run"]["attempt"] == second["attempt"])
    assert run["state"] == "running"


def test_a_pod_past_its_deadline_is_reported_as_failed(release: WatchedRelease) -> None:
    release.set_status(release.pod("deadline"), phase="Failed", reason="DeadlineExceeded", message="longer than 7200")
    release.wait_for_end("deadline", "failed", "DeadlineExceeded: longer than 7200")


def test_a_job_past_its_deadline_fails_all_its_runs(release: WatchedRelease) -> None:
    for workload in ("cifar", "mnist"):
        release.wait_for_end("late", "failed", "DeadlineExceeded", workload)


def test_a_missing_device_is_reported_as_the_reason_for_all_runs_of_its_job(release: WatchedRelease) -> None:
    terminated = {"reason": "Error", "exitCode": 3, "message": "error: no NVIDIA driver\n"}
    release.set_status(release.pod("absent"), phase="Failed", containerStatuses=[_container(terminated=terminated)])
    release.wait_for_end("absent", "failed", "Error: exit code 3: no NVIDIA driver")
    release.wait_for_end("absent", "failed", "PodFailurePolicy: ", "mnist")


def test_a_job_that_a_queue_holds_is_reported_as_waiting(release: WatchedRelease) -> None:
    (job,) = release.plane.get("jobs", "-n", release.namespace, "-l", "devbench/pool=held")
    release.plane.kubectl(
        "patch", "job", job["metadata"]["name"], "-n", release.namespace, "--type=merge", "-p",
        '{"spec":{"suspend":true}}',
    )  # fmt: skip
    release.wait_for_reason("held", "Suspended: held by queue benchmarks", "mnist")


def test_a_job_whose_pods_exceed_a_quota_is_reported_as_waiting(release: WatchedRelease) -> None:
    (job,) = release.plane.get("jobs", "-n", release.namespace, "-l", "devbench/pool=spot")
    copy = {**job, "metadata": {**job["metadata"], "name": "devbench-quota-00000000"}, "status": {}}
    for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "ownerReferences"):
        copy["metadata"].pop(key, None)
    copy["metadata"]["labels"] = {**copy["metadata"]["labels"], "devbench/pool": "quota"}
    copy["spec"].pop("selector", None)
    for key in list(copy["spec"]["template"]["metadata"]["labels"]):
        if "controller-uid" in key or "job-name" in key:
            del copy["spec"]["template"]["metadata"]["labels"][key]
    with _no_more_pods(release):
        release.plane.kubectl("create", "-n", release.namespace, "-f", "-", stdin=json.dumps(copy))
        release.wait_for_reason("quota", "FailedCreate: ")


def test_the_service_account_of_the_watcher_can_only_read_pods_jobs_and_events(release: WatchedRelease) -> None:
    account = f"--as=system:serviceaccount:{release.namespace}:devbench-watcher"
    for verb, resource, expected in [
        ("list", "pods", "yes"), ("watch", "jobs.batch", "yes"), ("list", "events", "yes"), ("delete", "pods", "no"),
        ("get", "secrets", "no"), ("create", "jobs.batch", "no"), ("patch", "jobs.batch", "no"),
        ("get", "pods --subresource=log", "no"),
    ]:  # fmt: skip
        output = release.plane.kubectl(
            "auth", "can-i", verb, *resource.split(), account, "-n", release.namespace, check=False
        )
        assert output.strip().endswith(expected), (verb, resource, output)
    assert release.plane.kubectl("auth", "can-i", "list", "pods", account, "-n", "default", check=False).strip() == "no"


def _report_running(release: WatchedRelease, pod: Object) -> Object:
    """Report to the hub that a pod runs, with the run id and attempt that the chart gives it."""
    release.set_status(pod, phase="Running", containerStatuses=[_container(running={})])
    labels, annotations = pod["metadata"]["labels"], pod["metadata"]["annotations"]
    variables = {
        "DEVBENCH_JOB_NAME": labels["batch.kubernetes.io/job-name"],
        "DEVBENCH_JOB_UID": labels["batch.kubernetes.io/controller-uid"],
        "JOB_COMPLETION_INDEX": annotations["batch.kubernetes.io/job-completion-index"],
        "DEVBENCH_FAILURES": annotations["batch.kubernetes.io/job-index-failure-count"],
    }
    environment = {variable["name"]: variable.get("value", "") for variable in pod["spec"]["containers"][0]["env"]}
    state = {
        "schema_version": MESSAGE_VERSION,
        "id": _expand(environment["DEVBENCH_RUN_ID"], variables),
        "attempt": int(_expand(environment["DEVBENCH_ATTEMPT"], variables)),
        "state": "running",
        "title": "cifar",
        "started": "2026-11-22T05:00:00Z",
        "devbench": "0.1.0",
        "pool": labels["devbench/pool"],
        "node": pod["spec"]["nodeName"],
    }
    response = urllib3.request(
        "PUT",
        f"{release.hub}/api/v1/runs/{state['id']}",
        body=json.dumps(state),
        headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
    )
    assert response.status == 200, response.data
    assert response.json()["outcome"] in ("created", "updated")
    return state


def _expand(text: str, variables: dict[str, str]) -> str:
    for name, value in variables.items():
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


@contextmanager
def _no_more_pods(release: WatchedRelease) -> Iterator[None]:
    """Forbid new pods in the namespace."""
    quota: Object = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": "0"}}}
    release.plane.apply({**quota, "metadata": {"name": "none", "namespace": release.namespace}})
    wait_until("the quota is active", lambda: _is_quota_active(release))
    yield
    release.plane.kubectl("delete", "resourcequota", "none", "-n", release.namespace)


def _is_quota_active(release: WatchedRelease) -> bool:
    (quota,) = release.plane.get("resourcequotas", "-n", release.namespace)
    return "hard" in quota.get("status", {})


def test_a_scheduled_job_without_nodes_is_ended_so_that_the_next_one_starts(
    plane: ControlPlane, tmp_path: Path
) -> None:
    name = "scheduled"
    plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    own = {"nowhere": {"preset": "none", "nodeSelector": {"pool": "nowhere"}}}
    values_file = tmp_path / "values.json"
    schedule = {"runNow": False, "schedule": {"cron": "* * * * *"}}
    values_file.write_text(
        json.dumps({**values(), "pools": {"cpu": None, "t4": None, **own}, **schedule}), encoding="utf-8"
    )
    install = ("install", "devbench", str(CHART), "-n", name, "--values", str(values_file))
    helm("helm-4", *install, kubeconfig=plane.kubeconfig)
    by_hand = plane.kubectl("create", "job", "by-hand", "--from=cronjob/devbench-nowhere", "-n", name)
    assert "created" in by_hand

    def two_jobs_of_the_schedule() -> bool:
        names = {job["metadata"]["name"] for job in plane.get("jobs", "-n", name)}
        return len(names - {"by-hand"}) >= 2

    with run_hub(tmp_path) as url, run_watcher(plane, name, url, tmp_path, "--wait", "5s", "--end-scheduled"):
        wait_until("the second Job of the schedule exists", two_jobs_of_the_schedule, 180)
        release = WatchedRelease(plane, name, url)
        for workload in ("cifar", "mnist"):
            run = release.wait_for_end("nowhere", "failed", "Ended by the watcher: Unschedulable: 0/", workload)
            assert "s for a node)" in run["reason"]
        (job,) = (job for job in plane.get("jobs", "-n", name) if job["metadata"]["name"] == "by-hand")
        assert "activeDeadlineSeconds" not in job["spec"] or job["spec"]["activeDeadlineSeconds"] > 1
    helm("helm-4", "uninstall", "devbench", "-n", name, kubeconfig=plane.kubeconfig)
    plane.clear(name)
