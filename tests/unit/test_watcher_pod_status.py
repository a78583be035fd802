"""The watcher's reports about Jobs, pods and events of the API server."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from bench.watcher.attempts import attempt
from bench.watcher.pod_status import QUEUED, JobView, deleted_job_reports, job_reports, latest_pods
from bench.watcher.prune import Object, prune
from bench.watcher.run_report import RunReport

pytestmark = pytest.mark.once

CREATED = datetime(2026, 11, 22, 5, 0, tzinfo=timezone.utc)
NOW = CREATED + timedelta(hours=1)
UID = "0f8fad5b-d9cb-469f-a165-70867728950e"


def job(**more: Any) -> Object:
    """Return a Job of a pool t4 with two workloads."""
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
    """Return a pod of that Job."""
    return {
        "metadata": {
            "uid": f"pod-{index}-{evictions}",
            "creationTimestamp": f"2026-11-22T05:00:0{evictions}Z",
            "labels": {"devbench/pool": "t4", "batch.kubernetes.io/controller-uid": UID},
            "annotations": {
                "batch.kubernetes.io/job-completion-index": str(index),
                "batch.kubernetes.io/job-index-failure-count": str(evictions),
            },
        },
        "spec": {
            "nodeName": status.pop("node", None),
            "containers": [{"resources": {"limits": {"memory": "8Gi"}}}],
        },
        "status": status,
    }


def container(**state: Any) -> list[Object]:
    return [{"name": "devbench", "state": state}]


def reports(*pods: Object, queued: bool = False, **options: Any) -> list[RunReport]:
    """Return the reports, those about queued runs only if asked for."""
    of, warnings = options.get("of") or job(), options.get("warnings") or {}
    now = CREATED + timedelta(seconds=options.get("after", 1))
    view = JobView(of, latest_pods(pods), warnings, now, options.get("started") or {})
    all_ = job_reports(view, patience=60)
    return [report for report in all_ if queued or not report.reason.startswith(QUEUED)]


def event(reason: str, at: str = "2026-11-22T05:00:30Z") -> Object:
    return {"metadata": {}, "type": "Warning", "reason": reason, "message": "no.", "lastTimestamp": at}


def test_a_pod_that_the_cluster_refuses_to_create_is_reported_after_earlier_pods_ended() -> None:
    ended = pod(phase="Succeeded", node="n")
    warnings = {UID: event("FailedCreate")}
    (report,) = reports(ended, warnings=warnings, after=31)
    assert (report.id.rpartition(".")[2], report.reason) == ("1", "FailedCreate: no.")
    # This event is older than the pod.
    assert reports(ended, warnings={UID: event("FailedCreate", "2026-11-22T04:59:00Z")}, after=31) == []
    assert reports(pod(phase="Running", node="n"), warnings=warnings, after=31) == []


def test_a_scheduled_pod_is_no_longer_unschedulable_and_a_slow_start_is_reported() -> None:
    pulls = pod(phase="Pending", node="n", containerStatuses=container(waiting={"reason": "ContainerCreating"}))
    warnings = {"pod-0-0": event("FailedScheduling")}
    assert reports(pulls, warnings=warnings, after=10) == []
    (report,) = reports(pulls, warnings=warnings, after=40)
    assert report.reason == "Starting: the node is pulling the image or creating the container"
    (report,) = reports(pulls, warnings={"pod-0-0": event("FailedMount")}, after=10)
    assert report.reason == "FailedMount: no."


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes fit."}


@pytest.mark.parametrize(
    ("silent_pod", "state", "reason"),
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
            "OOMKilled: the run needed more memory than 8Gi (pools.t4.memory)",
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
        (
            pod(
                phase="Failed",
                node="n",
                containerStatuses=[
                    *container(terminated={"reason": "Completed", "exitCode": 0}),  # an init container
                    *container(terminated={"reason": "Error", "exitCode": 4, "message": "error: it failed"}),
                ],
            ),
            "failed",
            "Error: exit code 4: it failed",
        ),
    ],
    ids=lambda argument: argument.split(":")[0] if isinstance(argument, str) and argument[0].isupper() else "",
)
def test_a_pod_that_cannot_report_itself_is_reported(silent_pod: Object, state: str, reason: str) -> None:
    (report,) = reports(silent_pod)
    assert (report.state, report.reason) == (state, reason)
    assert (report.workload, report.pool, report.id) == ("cifar", "t4", f"devbench-t4-1a2b3c4d.{UID}.0")


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_a_running_or_succeeded_pod_is_not_reported(phase: str) -> None:
    assert reports(pod(phase=phase, node="n")) == []


def test_a_starting_pod_is_not_reported_without_a_warning() -> None:
    starting = pod(phase="Pending", node="n", containerStatuses=container(waiting={"reason": "ContainerCreating"}))
    assert reports(starting) == []
    warned = {"reason": "FailedMount", "message": 'configmap "our-workloads" not found', "type": "Warning"}
    (report,) = reports(starting, warnings={"pod-0-0": warned})
    assert report.reason == 'FailedMount: configmap "our-workloads" not found'


def test_a_run_that_waits_too_long_for_a_node_has_failed_and_may_still_start() -> None:
    unscheduled = pod(phase="Pending", conditions=[UNSCHEDULABLE])
    (first,), (second,) = reports(unscheduled, after=59), reports(unscheduled, after=61)
    assert (first.state, second.state) == ("waiting", "failed")
    assert second.reason == "Unschedulable: 0/3 nodes fit. (waited 61 s for a node)"
    assert second.attempt < attempt(unscheduled, started=True), "the pod's own reports must win"


def test_a_run_may_wait_forever_for_a_node_that_another_run_uses() -> None:
    busy = {**UNSCHEDULABLE, "message": "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules."}
    waiting = reports(pod(phase="Pending", conditions=[busy]), queued=True, after=7200)
    assert [report.state for report in waiting] == ["waiting", "waiting"]


def test_a_pod_with_a_node_may_pull_its_image_for_long() -> None:
    pulling = pod(phase="Pending", node="n", containerStatuses=container(waiting={"reason": "ErrImagePull"}))
    (report,) = reports(pulling, after=600)
    assert report.state == "waiting"


def test_attempts_grow_with_each_eviction_and_each_start() -> None:
    numbers = [attempt(pod(evictions=count), started) for count in range(120) for started in (False, True)]
    assert numbers == sorted(set(numbers))


def test_the_latest_pod_of_an_index_counts() -> None:
    evicted = pod(phase="Failed", conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "Evicted"}])
    assert reports(evicted, pod(evictions=1, phase="Running", node="n")) == []
    assert reports(pod(evictions=1, phase="Running", node="n"), evicted) == []


def test_a_job_held_by_a_queue_is_reported_for_every_run() -> None:
    suspended = job(spec={"suspend": True}, labels={"kueue.x-k8s.io/queue-name": "benchmarks"})
    runs = reports(of=suspended, after=3600)
    assert [(report.workload, report.state, report.reason) for report in runs] == [
        ("cifar", "waiting", "Suspended: held by queue benchmarks"),
        ("mnist", "waiting", "Suspended: held by queue benchmarks"),
    ]


def test_pods_that_cannot_be_created_are_reported_from_the_event_of_the_job() -> None:
    warning = {"reason": "FailedCreate", "message": "exceeded quota", "type": "Warning"}
    assert {report.reason for report in reports(warnings={UID: warning})} == {"FailedCreate: exceeded quota"}


def test_a_job_that_failed_as_a_whole_is_reported_for_runs_without_a_pod() -> None:
    failed = {"type": "Failed", "status": "True", "reason": "PodFailurePolicy", "message": "exit code 3 at index 0"}
    failed_pod = pod(
        phase="Failed", node="n", containerStatuses=container(terminated={"reason": "Error", "exitCode": 3})
    )
    runs = reports(failed_pod, of=job(status={"failedIndexes": "0", "conditions": [failed]}))
    assert [(report.workload, report.reason) for report in runs] == [
        ("cifar", "Error: exit code 3"),
        ("mnist", "PodFailurePolicy: exit code 3 at index 0"),
    ]


def test_deleting_a_job_does_not_affect_its_ended_runs() -> None:
    half_finished = job(status={"completedIndexes": "0"})
    runs = deleted_job_reports(half_finished, [pod(0, phase="Succeeded"), pod(1, phase="Running", node="n")], NOW)
    assert [(report.workload, report.state) for report in runs] == [("mnist", "interrupted")]


def test_a_suspended_job_is_reported_with_the_time_of_its_suspension() -> None:
    (unschedulable,) = reports(pod(phase="Pending", conditions=[UNSCHEDULABLE]))
    condition = {"type": "Suspended", "status": "True", "lastTransitionTime": "2026-11-22T05:10:00Z"}
    suspended = job(spec={"suspend": True}, status={"conditions": [condition]})
    report = reports(of=suspended, after=700)[0]
    assert report.attempt == unschedulable.attempt
    assert report.since == CREATED + timedelta(minutes=10) > unschedulable.since
    # A run that had started before keeps its attempt. An earlier one would be out of date.
    ran = attempt(pod(), started=True)
    assert reports(of=suspended, after=700, started={0: ran})[0].attempt == ran


def test_a_quota_that_forbids_the_next_pod_of_an_evicted_run_is_reported_as_its_next_attempt() -> None:
    target = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    evicted = pod(phase="Failed", node="n", conditions=[target])
    warnings = {UID: event("FailedCreate")}
    (report,) = (report for report in reports(evicted, warnings=warnings, after=31) if report.workload == "cifar")
    assert (report.state, report.reason) == ("waiting", "FailedCreate: no.")
    assert attempt(evicted, started=True) < report.attempt < attempt(pod(evictions=1), started=True)
    # The same if the evicted pod is already gone.
    gone = [report for report in reports(warnings=warnings, started={0: 101}, after=31) if report.workload == "cifar"]
    assert [(report.attempt, report.since > CREATED) for report in gone] == [(101, True)]


def test_a_run_that_was_evicted_too_often_has_failed() -> None:
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    last = pod(evictions=3, phase="Failed", node="n", conditions=[target])
    assert [report.state for report in reports(last)] == ["interrupted"]
    (report,) = reports(last, of=job(status={"failedIndexes": "0"}))
    assert (report.state, report.reason) == ("failed", "PreemptionByScheduler (evicted 4 times)")


def test_a_job_that_fails_before_it_replaces_an_evicted_pod_fails_its_run() -> None:
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    evicted = pod(phase="Failed", node="n", conditions=[target])
    deadline = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded",
                "lastTransitionTime": "2026-11-22T05:30:00Z"}  # fmt: skip
    failed = job(status={"conditions": [deadline], "completedIndexes": "1"})
    for pods in ((evicted,), ()):  # the pod may be gone
        (report,) = reports(*pods, of=failed, started={0: 110})
        assert (report.state, report.reason, report.attempt) == ("failed", "DeadlineExceeded", 110)
        assert report.since == CREATED + timedelta(minutes=30), "later than what the hub knows of this attempt"


def test_deleting_a_job_interrupts_a_run_that_waits_for_its_next_pod() -> None:
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    evicted = pod(phase="Failed", node="n", conditions=[target])
    (report,) = deleted_job_reports(job(status={"completedIndexes": "1"}), [evicted], NOW)
    assert (report.state, report.attempt, report.since) == ("interrupted", 110, NOW)


def test_the_runs_behind_an_unschedulable_one_are_reported_and_fail_with_it() -> None:
    unscheduled = pod(phase="Pending", conditions=[UNSCHEDULABLE])
    _, behind = reports(unscheduled, queued=True, after=30)
    assert (behind.workload, behind.state) == ("mnist", "waiting")
    assert behind.reason == "Queued: behind cifar, which waits: Unschedulable: 0/3 nodes fit."
    assert [report.state for report in reports(unscheduled, queued=True, after=61)] == ["failed", "failed"]
    (behind,) = reports(pod(phase="Running", node="n"), queued=True, after=7200)
    assert (behind.workload, behind.state, behind.reason) == ("mnist", "waiting", "Queued: behind cifar")


def test_deleting_a_job_interrupts_its_queued_runs() -> None:
    suspended = job(spec={"suspend": True})
    waiting = reports(of=suspended)
    runs = deleted_job_reports(suspended, [], NOW)
    assert [(report.workload, report.state) for report in runs] == [("cifar", "interrupted"), ("mnist", "interrupted")]
    assert [(report.attempt, report.since) for report in runs] == [(report.attempt, NOW) for report in waiting]
    finished = job(status={"conditions": [{"type": "Failed", "status": "True"}]})
    assert deleted_job_reports(finished, [], NOW) == []


def test_pruned_objects_lead_to_the_same_reports() -> None:
    """A namespace can have thousands of objects, so the watcher keeps only what it reads."""
    statuses: list[dict[str, Any]] = [
        {"phase": "Pending", "conditions": [UNSCHEDULABLE]},
        {"phase": "Failed", "node": "n", "containerStatuses": container(terminated={"reason": "OOMKilled"})},
        {"phase": "Pending", "node": "n", "containerStatuses": container(waiting={"reason": "ImagePullBackOff"})},
    ]
    for status in statuses:
        whole = pod(evictions=2, **dict(status))
        whole["metadata"]["managedFields"] = ["x" * 10_000]
        pruned = prune("Pod", whole)
        assert len(str(pruned)) < 2000
        assert reports(pruned, of=prune("Job", job())) == reports(whole)
    warning = {**event("FailedMount"), "involvedObject": {"kind": "Pod", "uid": "u"}, "source": "x" * 10_000}
    starting = pod(phase="Pending", node="n")
    pruned = prune("Event", warning)
    assert len(str(pruned)) < 1000
    assert reports(starting, warnings={"pod-0-0": pruned}) == reports(starting, warnings={"pod-0-0": warning})
