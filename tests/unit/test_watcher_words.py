"""What the watcher says of Jobs, pods and events, as the API server gives them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from bench.watcher.pod_status import Object, Word, attempt, gone, words

pytestmark = pytest.mark.once

BORN = datetime(2026, 11, 22, 5, 0, tzinfo=timezone.utc)
UID = "0f8fad5b-d9cb-469f-a165-70867728950e"


def job(**more: Any) -> Object:
    """A Job of a pool t4 with two workloads."""
    return {
        "metadata": {
            "name": "devbench-t4-1a2b3c4d",
            "uid": UID,
            "creationTimestamp": "2026-11-22T05:00:00Z",
            "labels": {"devbench/pool": "t4", **more.pop("labels", {})},
            "annotations": {"devbench/workloads": '["cifar", "mnist"]'},
        },
        "spec": more.pop("spec", {}),
        "status": more.pop("status", {}),
    }


def pod(index: int = 0, evictions: int = 0, **status: Any) -> Object:
    """A pod of that Job."""
    counted = {"batch.kubernetes.io/job-index-ignored-failure-count": str(evictions)} if evictions else {}
    return {
        "metadata": {
            "uid": f"pod-{index}-{evictions}",
            "creationTimestamp": f"2026-11-22T05:00:0{evictions}Z",
            "labels": {"devbench/pool": "t4", "batch.kubernetes.io/controller-uid": UID},
            "annotations": {"batch.kubernetes.io/job-completion-index": str(index), **counted},
        },
        "spec": {
            "nodeName": status.pop("node", None),
            "containers": [{"resources": {"limits": {"memory": "8Gi"}}}],
        },
        "status": status,
    }


def container(**state: Any) -> list[Object]:
    return [{"name": "devbench", "state": state}]


def said(
    *pods: Object, of: Object | None = None, told: dict[str, Object] | None = None, after: float = 1
) -> list[Word]:
    return words(of or job(), pods, told or {}, BORN + timedelta(seconds=after), wait=60)


def event(reason: str, at: str = "2026-11-22T05:00:30Z") -> Object:
    return {"metadata": {}, "type": "Warning", "reason": reason, "message": "no.", "lastTimestamp": at}


def test_a_pod_that_the_cluster_refuses_after_others_ended_is_told() -> None:
    ended = pod(phase="Succeeded", node="n")
    told = {UID: event("FailedCreate")}
    (word,) = said(ended, told=told, after=31)
    assert (word.id.rpartition(".")[2], word.reason) == ("1", "FailedCreate: no.")
    assert said(ended, told={UID: event("FailedCreate", "2026-11-22T04:59:00Z")}, after=31) == []  # of before that pod
    assert said(pod(phase="Running", node="n"), told=told, after=31) == []


def test_what_kept_a_pod_from_a_node_is_over_once_it_has_one_and_a_long_start_is_told_as_that() -> None:
    pulls = pod(phase="Pending", node="n", containerStatuses=container(waiting={"reason": "ContainerCreating"}))
    told = {"pod-0-0": event("FailedScheduling")}
    assert said(pulls, told=told, after=10) == []
    (word,) = said(pulls, told=told, after=40)
    assert word.reason == "Starting: the node pulls the image or makes the container"
    (word,) = said(pulls, told={"pod-0-0": event("FailedMount")}, after=10)
    assert word.reason == "FailedMount: no."


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes fit."}


@pytest.mark.parametrize(
    ("found", "state", "reason"),
    [
        (pod(phase="Pending", conditions=[UNSCHEDULABLE]), "waiting", "Unschedulable: 0/3 nodes fit."),
        (
            pod(phase="Pending", node="n", containerStatuses=container(waiting={"reason": "ImagePullBackOff"})),
            "waiting",
            "ImagePullBackOff",
        ),
        (
            pod(
                phase="Pending",
                node="n",
                containerStatuses=container(waiting={"reason": "CreateContainerError", "message": "no such file"}),
            ),
            "waiting",
            "CreateContainerError: no such file",
        ),
        (
            pod(
                phase="Failed",
                node="n",
                containerStatuses=container(terminated={"reason": "OOMKilled", "exitCode": 137}),
            ),
            "failed",
            "OOMKilled: it needed more memory than 8Gi (pools.t4.memory)",
        ),
        (
            pod(phase="Failed", node="n", reason="Evicted", message="The node was low on memory."),
            "failed",
            "Evicted: The node was low on memory.",
        ),
        (pod(phase="Failed", node="n", reason="DeadlineExceeded"), "failed", "DeadlineExceeded"),
        (
            pod(phase="Failed", reason="UnexpectedAdmissionError", message="no GPU left"),
            "failed",
            "UnexpectedAdmissionError: no GPU left",
        ),
        (
            pod(
                phase="Failed",
                node="n",
                conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}],
            ),
            "interrupted",
            "PreemptionByScheduler",
        ),
        (
            pod(
                phase="Failed",
                node="n",
                containerStatuses=container(
                    terminated={"reason": "Error", "exitCode": 3, "message": "a\nerror: no driver\n  Install it.\n"}
                ),
            ),
            "failed",
            "Error: exit code 3: no driver Install it.",
        ),
    ],
    ids=lambda each: each.split(":")[0] if isinstance(each, str) and each[0].isupper() else "",
)
def test_a_pod_that_can_not_speak_is_spoken_for(found: Object, state: str, reason: str) -> None:
    (word,) = said(found)
    assert (word.state, word.reason) == (state, reason)
    assert (word.workload, word.pool, word.id) == ("cifar", "t4", f"devbench-t4-1a2b3c4d.{UID}.0")


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_a_pod_that_runs_or_has_done_well_speaks_for_itself(phase: str) -> None:
    assert said(pod(phase=phase, node="n")) == []


def test_a_pod_that_is_being_started_is_no_news() -> None:
    starting = pod(phase="Pending", node="n", containerStatuses=container(waiting={"reason": "ContainerCreating"}))
    assert said(starting) == []
    warned = {"reason": "FailedMount", "message": 'configmap "our-workloads" not found', "type": "Warning"}
    (word,) = said(starting, told={"pod-0-0": warned})
    assert word.reason == 'FailedMount: configmap "our-workloads" not found'


def test_who_waits_too_long_for_a_node_has_failed_and_may_still_begin() -> None:
    waiting = pod(phase="Pending", conditions=[UNSCHEDULABLE])
    (patient,), (late,) = said(waiting, after=59), said(waiting, after=61)
    assert (patient.state, late.state) == ("waiting", "failed")
    assert late.reason == "Unschedulable: 0/3 nodes fit. (waited 61 s for a node)"
    assert late.attempt < attempt(waiting, begun=True), "what the pod says itself must win"


def test_one_that_has_a_node_may_pull_its_image_for_long() -> None:
    pulling = pod(phase="Pending", node="n", containerStatuses=container(waiting={"reason": "ErrImagePull"}))
    (word,) = said(pulling, after=600)
    assert word.state == "waiting"


def test_attempts_grow_with_each_eviction_and_with_each_beginning() -> None:
    numbers = [attempt(pod(evictions=count), begun) for count in range(120) for begun in (False, True)]
    assert numbers == sorted(set(numbers))


def test_the_latest_pod_of_an_index_counts() -> None:
    evicted = pod(phase="Failed", conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "Evicted"}])
    assert said(evicted, pod(evictions=1, phase="Running", node="n")) == []
    assert said(pod(evictions=1, phase="Running", node="n"), evicted) == []


def test_a_job_held_by_a_queue_says_so_of_every_run() -> None:
    held = job(spec={"suspend": True}, labels={"kueue.x-k8s.io/queue-name": "benchmarks"})
    found = said(of=held, after=3600)
    assert [(word.workload, word.state, word.reason) for word in found] == [
        ("cifar", "waiting", "Suspended: held by queue benchmarks"),
        ("mnist", "waiting", "Suspended: held by queue benchmarks"),
    ]


def test_pods_that_can_not_even_be_made_are_told_by_the_jobs_event() -> None:
    refused = {"reason": "FailedCreate", "message": "exceeded quota", "type": "Warning"}
    assert {word.reason for word in said(told={UID: refused})} == {"FailedCreate: exceeded quota"}


def test_a_job_that_ended_as_a_whole_speaks_for_the_runs_that_never_were() -> None:
    failed = {"type": "Failed", "status": "True", "reason": "PodFailurePolicy", "message": "exit code 3 at index 0"}
    own = pod(phase="Failed", node="n", containerStatuses=container(terminated={"reason": "Error", "exitCode": 3}))
    found = said(own, of=job(status={"failedIndexes": "0", "conditions": [failed]}))
    assert [(word.workload, word.reason) for word in found] == [
        ("cifar", "Error: exit code 3"),
        ("mnist", "PodFailurePolicy: exit code 3 at index 0"),
    ]


def test_runs_that_had_ended_are_left_alone_when_their_job_goes() -> None:
    done = job(status={"completedIndexes": "0"})
    found = gone(done, [pod(0, phase="Succeeded"), pod(1, phase="Running", node="n")])
    assert [(word.workload, word.state) for word in found] == [("mnist", "interrupted")]
