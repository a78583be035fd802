"""A Job of a schedule that gets no node is ended. A Job that may still run, or that blocks nothing, is not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from api_server import Answer, Patch, api_server
from test_watcher_pod_status import CREATED, UNSCHEDULABLE, job, pod

from bench.watcher.api import Change, Server
from bench.watcher.health import Health
from bench.watcher.loop import end_overdue
from bench.watcher.overdue import ENDED, MANUAL, overdue
from bench.watcher.pod_status import job_reports
from bench.watcher.prune import Object
from bench.watcher.state import Watcher

pytestmark = pytest.mark.once

PATIENCE = 1800.0
LATE = CREATED + timedelta(seconds=PATIENCE + 1)
WAITING = pod(phase="Pending", conditions=[UNSCHEDULABLE])
BUSY = {**UNSCHEDULABLE, "message": "0/3 nodes are available: 1 node(s) didn't match pod anti-affinity rules."}
ENDED_LATER = [{"name": "devbench", "state": {"terminated": {"finishedAt": "2026-11-22T05:20:00Z", "exitCode": 0}}}]


def scheduled(annotations: dict[str, str] | None = None, spec: Object | None = None, **status: Any) -> Object:
    """Return a Job of a CronJob that has started."""
    made = job(spec=spec or {}, status={"startTime": "2026-11-22T05:00:00Z", **status})
    made["metadata"] |= {
        "ownerReferences": [{"kind": "CronJob", "name": "devbench-t4"}],
        "resourceVersion": "7",
        "annotations": {**made["metadata"]["annotations"], **(annotations or {})},
    }
    return made


def test_a_scheduled_job_whose_pod_gets_no_node_is_overdue_and_says_why() -> None:
    assert overdue(scheduled(), [WAITING], LATE, PATIENCE) == "Unschedulable: 0/3 nodes fit. (waited 1801 s for a node)"
    assert overdue(scheduled(), [WAITING], CREATED + timedelta(seconds=PATIENCE - 1), PATIENCE) == ""


@pytest.mark.parametrize(
    ("made", "pods"),
    [
        pytest.param(job(status={"startTime": "2026-11-22T05:00:00Z"}), [WAITING], id="no-schedule"),
        pytest.param(scheduled({MANUAL: "manual"}), [WAITING], id="started-by-hand"),
        pytest.param(scheduled({ENDED: "…"}), [WAITING], id="ended-before"),
        pytest.param(scheduled(spec={"suspend": True}), [WAITING], id="suspended"),
        pytest.param(scheduled(startTime=None), [WAITING], id="not-started"),
        pytest.param(scheduled(ready=1), [WAITING], id="a-pod-is-ready"),
        pytest.param(scheduled(conditions=[{"type": "Failed", "status": "True"}]), [WAITING], id="failed"),
        pytest.param(scheduled(), [], id="no-pod"),
        pytest.param(scheduled(), [pod(phase="Running", node="n")], id="runs"),
        pytest.param(scheduled(), [WAITING, pod(1, phase="Running", node="n")], id="another-pod-runs"),
        pytest.param(scheduled(), [pod(phase="Pending", conditions=[BUSY])], id="waits-for-another-run"),
        pytest.param(scheduled(), [pod(phase="Pending")], id="the-scheduler-has-not-answered"),
        pytest.param(
            scheduled(), [WAITING, pod(1, phase="Succeeded", containerStatuses=ENDED_LATER)], id="a-pod-has-just-ended"
        ),
    ],
)
def test_a_job_that_may_still_run_or_that_blocks_nothing_is_not_overdue(made: Object, pods: list[Object]) -> None:
    assert overdue(made, pods, LATE, PATIENCE) == ""


@pytest.fixture
def server() -> Iterator[tuple[Server, list[Any]]]:
    """Serve the pods in the list's first element, and answer patches with its second. Patches are appended."""
    seen: list[Any] = [[WAITING], 200]

    def on_patch(patch: Patch) -> Answer:
        seen.append(patch)
        return seen[1], {"message": "no"}

    def answer(_: dict[str, str]) -> Answer:
        return 200, {"metadata": {"resourceVersion": "9"}, "items": seen[0]}

    with api_server(answer, on_patch) as (url, _):
        yield Server("bench", url), seen


def watching(made: Object) -> Watcher:
    """Return a watcher that knows a Job with a pod that waits, and has told the hub about it."""
    watcher = Watcher(PATIENCE)
    watcher.update(Change("Job", "LIST", (made,)))
    watcher.update(Change("Pod", "LIST", (WAITING,)))
    watcher.review(LATE.timestamp())
    return watcher


def test_a_job_is_ended_with_the_reason_once_the_hub_knows_it(server: tuple[Server, list[Any]]) -> None:
    api, seen = server
    watcher = watching(scheduled())
    end_overdue(api, watcher, Health())
    assert seen[2:] == []
    while watcher.unsent:
        watcher.send(lambda state: None)
    end_overdue(api, watcher, Health())
    ((path, kind, body),) = seen[2:]
    assert path == "/apis/batch/v1/namespaces/bench/jobs/devbench-t4-1a2b3c4d"
    assert kind == "application/merge-patch+json"
    assert body["spec"] == {"activeDeadlineSeconds": 1}
    assert body["metadata"]["resourceVersion"] == "7"
    assert body["metadata"]["annotations"][ENDED].startswith("Unschedulable: 0/3 nodes fit. (waited ")


def test_a_job_whose_pod_has_got_a_node_meanwhile_is_not_ended(server: tuple[Server, list[Any]]) -> None:
    api, seen = server
    watcher = watching(scheduled())
    watcher.unsent.clear()
    seen[0] = [pod(phase="Running", node="n")]
    end_overdue(api, watcher, Health())
    assert seen[2:] == []


@pytest.mark.parametrize(("status", "faults"), [(403, 1), (404, 0), (409, 0)])
def test_only_a_refusal_makes_the_watcher_unready(
    status: int, faults: int, server: tuple[Server, list[Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    api, seen = server
    watcher, health = watching(scheduled()), Health(clock=iter(range(0, 10_000, 100)).__next__)
    watcher.unsent.clear()
    seen[1] = status
    end_overdue(api, watcher, health)
    assert len(seen) == 3
    assert len(health.faults()) == faults
    assert ("needs patch on jobs" in capsys.readouterr().err) is bool(faults)


def test_the_watcher_is_ready_again_once_no_job_is_to_be_ended(server: tuple[Server, list[Any]]) -> None:
    api, seen = server
    watcher, health = watching(scheduled()), Health(clock=iter(range(0, 10_000, 100)).__next__)
    watcher.unsent.clear()
    seen[1] = 403
    end_overdue(api, watcher, health)
    assert len(health.faults()) == 1
    watcher.update(Change("Pod", "LIST", (pod(phase="Running", node="n"),)))
    end_overdue(api, watcher, health)
    assert health.faults() == []


def test_the_runs_of_an_ended_job_say_what_they_waited_for() -> None:
    from bench.watcher.pod_status import JobView

    why = "Unschedulable: 0/3 nodes fit. (waited 1801 s for a node)"
    failed = [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "too long"}]
    view = JobView(scheduled({ENDED: why}, conditions=failed), {}, {}, LATE, {})
    reports = job_reports(view, PATIENCE)
    assert [report.reason for report in reports] == [f"Ended by the watcher: {why}"] * 2
