"""The watcher's reports about runs of several workers: one report per Job, which names the worker that is missing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from test_watcher_loop import reports as sent
from test_watcher_pod_status import CREATED, UID, UNSCHEDULABLE, container, event, job, pod

from bench.watcher.api import Change
from bench.watcher.attempts import attempt
from bench.watcher.pod_status import JobView, latest_pods
from bench.watcher.pool_queue import PoolQueues, Wait
from bench.watcher.prune import Object, prune
from bench.watcher.run_report import RunReport
from bench.watcher.state import Watcher
from bench.watcher.workers import run_reports

pytestmark = pytest.mark.once

PATIENCE = 60
RUNNING = {"phase": "Running", "node": "n"}
NO_NODE: dict[str, Any] = {"phase": "Pending", "conditions": [UNSCHEDULABLE]}
EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


def scaling(count: int = 4, uid: str = UID, **more: Any) -> Object:
    """Return a Job of a pool with workers, as the watcher keeps it."""
    of = job(**more)
    of["metadata"]["uid"] = uid
    of["metadata"]["annotations"] = {"devbench/workloads": '["cifar"]', "devbench/workers": str(count)}
    return prune("Job", of)


def worker(index: int, **status: Any) -> Object:
    """Return a pod of that Job. It has no count of failures, because its Job has no limit per index."""
    made = pod(index, **status)
    del made["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"]
    return made


def reports(*pods: Object, after: float = 1, wait: Wait | None = None, **options: Any) -> list[RunReport]:
    of, warnings = options.get("of") or scaling(), options.get("warnings") or {}
    now = CREATED + timedelta(seconds=after)
    view = JobView(of, latest_pods(pods), warnings, now, options.get("started", {}))
    return run_reports(view, PATIENCE, wait or Wait())


def killed(index: int, second: int) -> Object:
    """Return a worker that was killed for memory at a second of the run."""
    finished = (CREATED + timedelta(seconds=second)).isoformat()
    end = container(terminated={"reason": "OOMKilled", "exitCode": 137, "finishedAt": finished})
    return worker(index, phase="Failed", node="n", containerStatuses=end)


def test_workers_without_a_node_are_one_run_that_names_them_and_the_reason() -> None:
    pods = (worker(0, **RUNNING), worker(1, **RUNNING), worker(2, **NO_NODE))
    (report,) = reports(*pods, worker(3, **RUNNING))
    assert report.id == f"devbench-t4-1a2b3c4d.{UID}.0"
    assert (report.workload, report.state) == ("cifar", "waiting")
    assert report.reason == "Waiting for worker 2: Unschedulable: 0/3 nodes fit."
    (report,) = reports(*pods, worker(3, **NO_NODE))
    assert report.reason == "Waiting for workers 2 and 3: Unschedulable: 0/3 nodes fit."


def test_a_run_whose_first_worker_has_not_started_fails_after_the_patience_and_says_who_never_came() -> None:
    pods = (worker(0, phase="Pending", node="n"), *(worker(index, **NO_NODE) for index in (1, 2, 3)))
    (report,) = reports(*pods, after=61)
    assert report.state == "failed"
    assert report.reason == ("workers 1, 2 and 3 never came: Unschedulable: 0/3 nodes fit. (waited 61 s for a node)")
    assert report.attempt < attempt(pods[0], started=True), "if it starts later, its result counts"


def test_the_watcher_does_not_end_a_run_whose_first_worker_runs_because_that_one_ends_it() -> None:
    pods = (worker(0, **RUNNING), worker(1, **NO_NODE))
    assert [report.state for report in reports(*pods, after=3600)] == ["waiting"]
    assert reports(worker(0, **RUNNING), killed(1, second=30)) == []


def test_the_worker_that_ended_first_is_the_reason_of_a_run_that_could_not_report_itself() -> None:
    (report,) = reports(killed(0, second=40), killed(2, second=30), killed(3, second=50))
    assert report.state == "failed"
    assert report.reason == "worker 2: OOMKilled: the run needed more memory than 8Gi (pools.t4.memory)"
    assert report.attempt == attempt(worker(0), started=True)


def test_a_run_of_several_workers_never_starts_again_after_an_eviction() -> None:
    evicted = worker(1, phase="Failed", node="n", conditions=[EVICTED])
    (report,) = reports(killed(0, second=40), evicted)
    assert (report.state, report.reason) == ("failed", "worker 1: PreemptionByScheduler")


def test_a_worker_that_a_quota_forbids_is_named() -> None:
    (report,) = reports(worker(0, **RUNNING), worker(1, **RUNNING), warnings={UID: event("FailedCreate")})
    assert report.reason == "Waiting for workers 2 and 3: FailedCreate: no."


def test_a_run_is_over_once_its_first_worker_has_succeeded() -> None:
    assert reports(worker(0, phase="Succeeded", node="n"), killed(1, second=30)) == []
    assert reports(killed(1, second=30), of=scaling(status={"completedIndexes": "0"})) == []


@pytest.mark.parametrize("label", ["kueue.x-k8s.io/queue-name", "devbench/queue"])
def test_a_job_that_a_queue_holds_is_one_waiting_run(label: str) -> None:
    (report,) = reports(of=scaling(spec={"suspend": True}, labels={label: "benchmarks"}), after=3600)
    assert (report.state, report.reason) == ("waiting", "Suspended: held by queue benchmarks")


def test_workers_that_a_queue_preempts_wait_again_and_have_not_failed() -> None:
    of = scaling(spec={"suspend": True})
    (report,) = reports(killed(0, second=30), killed(1, second=30), of=of, started={0: 101})
    assert (report.state, report.reason, report.attempt) == ("waiting", "Suspended: spec.suspend is true", 101)


def test_workers_may_wait_forever_for_nodes_of_another_run_but_not_for_their_own() -> None:
    busy = {**UNSCHEDULABLE, "message": "3 node(s) didn't match pod anti-affinity rules."}
    pending = [worker(index, phase="Pending", conditions=[busy]) for index in range(4)]
    assert [report.state for report in reports(*pending, after=3600)] == ["waiting"]
    placed = worker(0, phase="Pending", node="n")
    assert [report.state for report in reports(placed, *pending[1:], after=3600)] == ["failed"]


def test_a_job_past_its_deadline_fails_a_run_that_has_not_started() -> None:
    late = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "active too long"}
    (report,) = reports(of=scaling(status={"conditions": [late]}))
    assert (report.state, report.reason) == ("failed", "DeadlineExceeded: active too long")


@pytest.mark.parametrize("count", [1, 4])
def test_a_run_that_waits_for_another_one_on_its_nodes_is_queued_and_then_has_all_its_patience(count: int) -> None:
    waits, of = worker(0, **NO_NODE), scaling(count)
    (report,) = reports(waits, of=of, after=3600, wait=Wait(behind="mnist with 2 workers"))
    assert (report.state, report.reason) == ("waiting", "Queued: behind mnist with 2 workers")
    ended = Wait(since=CREATED + timedelta(seconds=3550))
    assert [report.state for report in reports(waits, of=of, after=3600, wait=ended)] == ["waiting"]
    assert [report.state for report in reports(waits, of=of, after=3611, wait=ended)] == ["failed"]


def test_a_run_waits_for_the_run_of_the_same_pool_whose_pods_have_nodes() -> None:
    mine, other, elsewhere = scaling(2), scaling(2, uid="other"), scaling(2, uid="elsewhere")
    elsewhere["metadata"]["labels"] = {"devbench/pool": "cpu"}
    jobs = {of["metadata"]["uid"]: of for of in (mine, other, elsewhere)}
    busy = {"elsewhere": {"a": worker(0, **RUNNING)}, "other": {"b": worker(0, **NO_NODE)}}
    assert PoolQueues(jobs, busy).of(mine) == Wait()
    busy["other"]["b"] = worker(0, **RUNNING)
    assert PoolQueues(jobs, busy).of(mine) == Wait(behind="cifar with 2 workers")
    busy["other"]["b"] = killed(0, second=30)
    assert PoolQueues(jobs, busy).of(mine) == Wait(since=CREATED + timedelta(seconds=30))
    assert PoolQueues(jobs, busy).of(job()) == Wait(), "a Job without workers waits for no other"


def test_a_run_that_gave_up_waiting_says_what_kept_the_missing_worker_only_if_it_is_still_missing() -> None:
    gave_up = container(terminated={"reason": "Error", "exitCode": 4, "message": "error: worker 1 never came"})
    ended = worker(0, phase="Failed", node="n", containerStatuses=gave_up)

    def last_reason(second_worker: Object) -> str:
        watcher = Watcher(patience=PATIENCE)
        watcher.update(Change("Job", "LIST", (scaling(2),)))
        watcher.update(Change("Pod", "LIST", (worker(0, **RUNNING), worker(1, **NO_NODE))))
        (waits,) = sent(watcher)
        assert waits.progress is not None
        assert waits.progress.note == "Waiting for worker 1: Unschedulable: 0/3 nodes fit."
        watcher.update(Change("Pod", "SET", (second_worker,)))
        sent(watcher)
        watcher.update(Change("Pod", "SET", (ended,)))
        watcher.update(Change("Pod", "DELETED", (second_worker,)))
        return sent(watcher)[0].reason

    error = "Error: exit code 4: worker 1 never came"
    assert last_reason(worker(1, **NO_NODE)) == (
        f"{error}. Before: Waiting for worker 1: Unschedulable: 0/3 nodes fit."
    )
    assert last_reason(worker(1, **RUNNING)) == error
