"""The watcher: reports, heartbeats, and reports that wait while the hub is unavailable."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

import pytest
from test_watcher_pod_status import CREATED, UID, UNSCHEDULABLE, container, job, pod

from bench.errors import DevbenchError
from bench.model.run_state import RunState
from bench.watcher.api import Change
from bench.watcher.state import HEARTBEAT, LONGEST, QUEUED_HEARTBEAT, UNKNOWN, Watcher

pytestmark = pytest.mark.once

NOW = CREATED.timestamp() + 1
WAITING = pod(phase="Pending", conditions=[UNSCHEDULABLE])


def watcher(*changes: Change) -> Watcher:
    loop = Watcher(patience=1800)
    loop.update(Change("Job", "LIST", (job(),)))
    for change in changes:
        loop.update(change)
    return loop


def reports(loop: Watcher, now: float = NOW, queued: bool = False) -> list[RunState]:
    """Return the states that are sent, those of queued runs only if asked for."""
    states: list[RunState] = []
    loop.review(now)
    while loop.unsent:
        loop.send(states.append)
    return [state for state in states if queued or not (state.progress and state.progress.note.startswith("Queued"))]


def test_a_waiting_run_is_reported_immediately_and_with_each_heartbeat() -> None:
    loop = watcher(Change("Pod", "LIST", (WAITING,)))
    (first,) = reports(loop)
    assert (first.state, first.pool, first.title) == ("running", "t4", "cifar")
    assert first.progress is not None
    assert (first.progress.phase, first.progress.note) == ("waiting", "Unschedulable: 0/3 nodes fit.")
    assert reports(loop, NOW + 1) == []
    assert len(reports(loop, NOW + HEARTBEAT)) == 1


def test_a_run_that_waited_for_another_run_has_all_its_patience_when_the_reason_changes() -> None:
    busy = {**UNSCHEDULABLE, "message": "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules."}
    waiting = pod(phase="Pending", conditions=[busy])
    loop = watcher(Change("Pod", "LIST", (waiting,)))
    reports(loop)
    reports(loop, NOW + 7200)
    loop.update(Change("Pod", "SET", (WAITING,)))
    states = [reports(loop, NOW + 7200 + seconds)[0].state for seconds in (1, loop.patience + 1)]
    assert states == ["running", "failed"]


def test_a_failure_is_reported_once() -> None:
    failed = pod(phase="Failed", node="n", containerStatuses=container(terminated={"reason": "OOMKilled"}))
    loop = watcher(Change("Pod", "LIST", (failed,)))
    (report,) = reports(loop)
    assert report.state == "failed"
    loop.update(Change("Pod", "SET", (failed,)))
    assert reports(loop, NOW + 10 * HEARTBEAT) == []


def test_no_report_is_lost_while_the_hub_is_unavailable() -> None:
    loop = watcher(Change("Pod", "LIST", (WAITING,)))

    def unavailable(_: RunState) -> None:
        raise DevbenchError("the hub is unavailable")

    loop.review(NOW)
    for _ in range(3):
        with pytest.raises(DevbenchError):
            loop.send(unavailable)
    assert len(reports(loop)) == 1


def test_a_long_reason_is_cut() -> None:
    long = {**UNSCHEDULABLE, "message": "0/9 nodes fit. " * 1000}
    (state,) = reports(watcher(Change("Pod", "LIST", (pod(phase="Pending", conditions=[long]),))))
    assert state.progress is not None
    assert (len(state.progress.note), state.progress.note[-1]) == (LONGEST, "…")


def test_queued_runs_are_reported_last_and_rarely() -> None:
    loop = watcher(Change("Pod", "LIST", (WAITING,)))
    assert [state.title for state in reports(loop, queued=True)] == ["cifar", "mnist"]
    assert [state.title for state in reports(loop, NOW + HEARTBEAT, queued=True)] == ["cifar"]
    assert [state.title for state in reports(loop, NOW + QUEUED_HEARTBEAT, queued=True)] == ["cifar", "mnist"]


def test_a_deadline_that_ends_a_waiting_run_keeps_what_it_waited_for() -> None:
    loop = watcher(Change("Pod", "LIST", (WAITING,)))
    reports(loop)
    deadline = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "too long"}
    loop.update(Change("Pod", "DELETED", (WAITING,)))
    assert reports(loop, NOW + 1) == []
    loop.update(Change("Job", "SET", (job(status={"conditions": [deadline]}),)))
    first, _ = reports(loop, NOW + 2)
    assert (first.title, first.state) == ("cifar", "failed")
    assert first.reason == "DeadlineExceeded: too long. Before: Unschedulable: 0/3 nodes fit."


def test_a_suspended_run_that_had_started_is_reported_again() -> None:
    loop = watcher(Change("Pod", "LIST", (pod(phase="Running", node="n"),)))
    reports(loop)
    loop.update(Change("Pod", "DELETED", (pod(phase="Running", node="n"),)))
    loop.update(Change("Job", "SET", (job(spec={"suspend": True}),)))
    first, second = reports(loop, NOW + 1)
    assert (first.attempt, second.attempt) == (101, 100)


def test_a_run_that_a_queue_preempts_waits_again_and_has_not_failed() -> None:
    ended = pod(phase="Failed", node="n", containerStatuses=container(terminated={"reason": "Error", "exitCode": 143}))
    ended["metadata"]["deletionTimestamp"] = "2026-11-22T05:10:00Z"
    since = {"type": "Suspended", "status": "True", "lastTransitionTime": "2026-11-22T05:10:00Z"}
    suspended = job(spec={"suspend": True}, status={"conditions": [since], "completedIndexes": "1"})
    loop = watcher(Change("Pod", "LIST", (pod(phase="Running", node="n"),)))
    reports(loop)
    loop.update(Change("Job", "SET", (suspended,)))
    loop.update(Change("Pod", "SET", (ended,)))
    (state,) = reports(loop, NOW + 1)
    assert (state.state, state.attempt, state.started) == ("running", 101, CREATED + timedelta(minutes=10))
    assert state.progress is not None
    assert state.progress.note == "Suspended: spec.suspend is true"
    loop.update(Change("Pod", "DELETED", (ended,)))
    assert reports(loop, NOW + 2) == []
    # Kubernetes may count the removed pod as no failure. Then the next pod has the same number.
    loop.update(Change("Job", "SET", (job(status={"completedIndexes": "1"}),)))
    loop.update(Change("Pod", "SET", (WAITING,)))
    (state,) = reports(loop, NOW + 3)
    assert (state.state, state.attempt) == ("running", 101)


def test_a_run_that_was_evicted_too_often_has_failed_even_if_its_pod_is_gone() -> None:
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    evicted = pod(evictions=5, phase="Failed", node="n", conditions=[target])
    loop = watcher(Change("Pod", "LIST", (evicted,)))
    assert [state.state for state in reports(loop)] == ["interrupted"]
    loop.update(Change("Pod", "DELETED", (evicted,)))
    loop.update(Change("Job", "SET", (job(status={"failedIndexes": "0"}),)))
    (state,) = reports(loop, NOW + 1)
    assert (state.state, state.attempt) == ("failed", 151)
    assert state.reason == "PreemptionByScheduler (evicted too often)"
    assert reports(loop, NOW + HEARTBEAT) == []


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_a_pod_that_fails_and_is_gone_at_once_is_reported(kind: Literal["Pod", "Job"]) -> None:
    killed = pod(phase="Failed", node="n", containerStatuses=container(terminated={"reason": "OOMKilled"}))
    loop = watcher(Change("Pod", "LIST", (pod(phase="Running", node="n"),)))
    reports(loop)
    loop.update(Change("Pod", "SET", (killed,)))
    loop.update(Change(kind, "DELETED", (killed if kind == "Pod" else job(),)))
    state = next(state for state in reports(loop, NOW + 1) if state.title == "cifar")
    assert (state.state, state.reason.partition(":")[0]) == ("failed", "OOMKilled")


@pytest.mark.parametrize("text", ["cifar", "5", "[" * 100_000, ""], ids=["word", "number", "nested", "empty"])
def test_a_job_with_foreign_annotations_does_not_stop_the_watcher(text: str) -> None:
    foreign = job()
    foreign["metadata"]["annotations"] = {"devbench/workloads": text, "devbench/workers": text.replace("5", "many")}
    loop = Watcher(patience=1800)
    loop.update(Change("Job", "LIST", (foreign,)))
    loop.update(Change("Pod", "LIST", (WAITING,)))
    assert [state.title for state in reports(loop)] == ["0"]


def test_an_evicted_run_that_waits_keeps_its_attempt_when_its_pod_is_gone() -> None:
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    evicted = pod(phase="Failed", node="n", conditions=[target])
    quota = {"metadata": {}, "type": "Warning", "reason": "FailedCreate", "lastTimestamp": "2026-11-22T05:20:00Z",
             "involvedObject": {"kind": "Job", "uid": UID}}  # fmt: skip
    loop = watcher(Change("Pod", "LIST", (evicted,)), Change("Event", "SET", (quota,)))
    assert [state.attempt for state in reports(loop) if state.title == "cifar"] == [110]
    loop.update(Change("Pod", "DELETED", (evicted,)))
    assert [state.attempt for state in reports(loop, NOW + HEARTBEAT) if state.title == "cifar"] == [110]


def test_only_warnings_about_known_objects_and_a_limited_number_of_others_are_kept() -> None:
    def warning(uid: str) -> dict[str, Any]:
        subject = {"kind": "Pod", "uid": uid}
        return {"metadata": {}, "type": "Warning", "reason": "FailedMount", "involvedObject": subject}

    starting = pod(phase="Pending", node="n", containerStatuses=container(waiting={"reason": "ContainerCreating"}))
    loop = watcher()
    for number in range(3 * UNKNOWN):
        loop.update(Change("Event", "SET", (warning(f"foreign-{number}"),)))
    loop.update(Change("Event", "SET", (warning("pod-0-0"),)))
    assert (len(loop.warnings), len(loop.unknown)) == (0, UNKNOWN)
    loop.update(Change("Pod", "LIST", (starting,)))
    (report,) = reports(loop)
    assert report.progress is not None
    assert report.progress.note == "FailedMount"
    loop.update(Change("Pod", "DELETED", (starting,)))
    assert loop.warnings == {}


def test_a_run_that_starts_is_no_longer_reported() -> None:
    loop = watcher(Change("Pod", "LIST", (WAITING,)))
    assert reports(loop)
    loop.update(Change("Pod", "SET", (pod(phase="Running", node="n"),)))
    assert reports(loop, NOW + 10 * HEARTBEAT) == []


@pytest.mark.parametrize(
    "change", [Change("Job", "DELETED", (job(),)), Change("Job", "LIST", ())], ids=["event", "list"]
)
def test_deleting_a_job_interrupts_its_runs(change: Change) -> None:
    loop = watcher(Change("Pod", "LIST", (pod(phase="Running", node="n"),)))
    loop.update(change)
    states = reports(loop)
    assert {state.title for state in states} == {"cifar", "mnist"}
    assert {(state.state, state.reason) for state in states} == {
        ("interrupted", "JobDeleted: the Job was deleted or replaced")
    }


def test_nothing_is_kept_of_a_job_whose_pods_are_deleted_after_it() -> None:
    running = pod(phase="Running", node="n")
    loop = watcher(Change("Pod", "LIST", (running,)))
    loop.update(Change("Job", "DELETED", (job(),)))
    loop.update(Change("Pod", "SET", (running,)))
    loop.update(Change("Pod", "DELETED", (running,)))
    assert (loop.jobs, loop.pods, loop.started) == ({}, {}, {})


def test_events_of_other_objects_and_events_that_are_not_warnings_are_ignored() -> None:
    def event(severity: str, **more: Any) -> dict[str, Any]:
        subject = {"kind": "Pod", "uid": "pod-0-0", **more}
        return {"metadata": {}, "type": severity, "reason": "Pulled", "involvedObject": subject}

    starting = pod(phase="Pending", node="n", containerStatuses=container(waiting={"reason": "ContainerCreating"}))
    loop = watcher(Change("Pod", "LIST", (starting,)))
    loop.update(
        Change("Event", "LIST", (event("Normal"), event("Warning", kind="Node"), event("Warning", uid="other")))
    )
    assert reports(loop) == []
    loop.update(Change("Event", "SET", (event("Warning"),)))
    assert len(reports(loop)) == 1
