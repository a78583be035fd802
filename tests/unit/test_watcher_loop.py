"""The watcher's memory: what it says, when it says it again, and what it keeps when the hub is away."""

from __future__ import annotations

from typing import Any

import pytest
from test_watcher_words import BORN, UNSCHEDULABLE, container, job, pod

from bench.errors import DevbenchError
from bench.model.run_state import RunState
from bench.watcher.api import Change
from bench.watcher.loop import HEARTBEAT, Watcher

pytestmark = pytest.mark.once

NOW = BORN.timestamp() + 1
WAITING = pod(phase="Pending", conditions=[UNSCHEDULABLE])


def watcher(*changes: Change) -> Watcher:
    made = Watcher(wait=1800)
    made.take(Change("Job", "ALL", (job(),)))
    for change in changes:
        made.take(change)
    return made


def heard(made: Watcher, now: float = NOW) -> list[RunState]:
    found: list[RunState] = []
    made.review(now)
    made.speak(found.append)
    return found


def test_what_waits_is_said_at_once_and_again_with_each_heartbeat_only() -> None:
    made = watcher(Change("Pod", "ALL", (WAITING,)))
    (first,) = heard(made)
    assert (first.state, first.pool, first.title) == ("running", "t4", "cifar")
    assert first.progress is not None
    assert (first.progress.phase, first.progress.note) == ("waiting", "Unschedulable: 0/3 nodes fit.")
    assert heard(made, NOW + 1) == []
    assert len(heard(made, NOW + HEARTBEAT)) == 1


def test_the_same_failure_is_said_once() -> None:
    failed = pod(phase="Failed", node="n", containerStatuses=container(terminated={"reason": "OOMKilled"}))
    made = watcher(Change("Pod", "ALL", (failed,)))
    (said,) = heard(made)
    assert said.state == "failed"
    made.take(Change("Pod", "SET", (failed,)))
    assert heard(made, NOW + 10 * HEARTBEAT) == []


def test_nothing_is_lost_while_the_hub_is_away() -> None:
    made = watcher(Change("Pod", "ALL", (WAITING,)))

    def away(_: RunState) -> None:
        raise DevbenchError("the hub is away")

    made.review(NOW)
    for _ in range(3):
        with pytest.raises(DevbenchError):
            made.speak(away)
    assert len(heard(made)) == 1


def test_a_run_that_begins_is_no_longer_spoken_for() -> None:
    made = watcher(Change("Pod", "ALL", (WAITING,)))
    assert heard(made)
    made.take(Change("Pod", "SET", (pod(phase="Running", node="n"),)))
    assert heard(made, NOW + 10 * HEARTBEAT) == []


@pytest.mark.parametrize(
    "change", [Change("Job", "DELETED", (job(),)), Change("Job", "ALL", ())], ids=["told", "listed"]
)
def test_a_job_that_is_removed_interrupts_its_runs(change: Change) -> None:
    made = watcher(Change("Pod", "ALL", (pod(phase="Running", node="n"),)))
    made.take(change)
    (said,) = heard(made)
    assert (said.state, said.reason) == ("interrupted", "JobDeleted: the Job was removed or replaced")


def test_events_that_are_no_warnings_or_about_others_change_nothing() -> None:
    def event(severity: str, **more: Any) -> dict[str, Any]:
        about = {"kind": "Pod", "uid": "pod-0-0", **more}
        return {"metadata": {}, "type": severity, "reason": "Pulled", "involvedObject": about}

    starting = pod(phase="Pending", node="n", containerStatuses=container(waiting={"reason": "ContainerCreating"}))
    made = watcher(Change("Pod", "ALL", (starting,)))
    made.take(Change("Event", "ALL", (event("Normal"), event("Warning", kind="Node"), event("Warning", uid="other"))))
    assert heard(made) == []
    made.take(Change("Event", "SET", (event("Warning"),)))
    assert len(heard(made)) == 1
