"""Runs at a hub: started, alive, ended, or lost."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hubs import RunningHub

from bench.hub.db import documents, records, run_queries, writes
from bench.hub.db.database import Database
from bench.hub.problems import Problem
from bench.model.run_state import MESSAGE_VERSION, RunState

pytestmark = pytest.mark.once

STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


def run(name: str = "r", /, **changes: Any) -> RunState:
    defaults: dict[str, Any] = {
        "id": name,
        "state": "running",
        "title": "cifar",
        "started": STARTED,
        "devbench": "0.1.0",
    }
    return RunState(**{**defaults, **changes})


def send(hub: RunningHub, state: RunState) -> str:
    response = hub.put(f"/api/v1/runs/{state.id}", state.model_dump_json().encode())
    assert response.status == 200, response.data
    outcome: str = response.json()["outcome"]
    return outcome


def state_and_attempt(hub: RunningHub, name: str = "r") -> tuple[str, int]:
    status = hub.get(f"/api/v1/runs/{name}")
    return status["state"], status["run"]["attempt"]


def test_a_run_reports_its_start_its_progress_and_its_end(hub: RunningHub) -> None:
    assert send(hub, run()) == "created"
    progress = {"title": "cifar on cpu, fit", "phase": "steady state", "trial": 3, "elapsed": 12.5, "budget": 90.0}
    assert send(hub, run(progress=progress)) == "updated"
    assert hub.get("/api/v1/runs")["runs"][0]["run"]["progress"]["trial"] == 3
    assert state_and_attempt(hub) == ("running", 1)
    assert send(hub, run(state="finished", results=["a", "b"])) == "updated"
    assert state_and_attempt(hub) == ("finished", 1)


def test_a_heartbeat_after_the_end_changes_nothing(hub: RunningHub) -> None:
    send(hub, run(state="failed", reason="it broke"))
    assert send(hub, run()) == "superseded"
    assert send(hub, run(state="failed", reason="it broke")) == "same"
    assert state_and_attempt(hub) == ("failed", 1)


def test_a_later_attempt_replaces_an_earlier_one_but_not_the_reverse(hub: RunningHub) -> None:
    send(hub, run(state="interrupted"))
    assert send(hub, run(attempt=2)) == "updated"
    assert send(hub, run(state="finished", attempt=1)) == "superseded"
    assert state_and_attempt(hub) == ("running", 2)


def test_an_interrupted_run_continues_when_it_is_started_again(hub: RunningHub) -> None:
    send(hub, run(state="interrupted", reason="by SIGTERM"))
    assert send(hub, run()) == "superseded"  # its last heartbeat, late
    restarted = {"started": STARTED + timedelta(seconds=20)}
    assert send(hub, run(**restarted)) == "updated"
    assert state_and_attempt(hub) == ("running", 1)
    assert send(hub, run(state="interrupted", reason="by SIGTERM")) == "superseded"
    assert send(hub, run(state="finished", **restarted)) == "updated"
    assert state_and_attempt(hub) == ("finished", 1)


def test_an_end_that_the_watcher_reports_counts_even_if_the_run_started_after_its_pod(hub: RunningHub) -> None:
    started = STARTED + timedelta(seconds=5)
    send(hub, run(started=started, results=["a"]))
    observed = {"observed": True, "reason": "OOMKilled: it needed more memory than 8Gi"}
    assert send(hub, run(state="failed", **observed)) == "updated"
    status = hub.get("/api/v1/runs/r")
    assert (status["state"], status["run"]["reason"], status["run"]["results"]) == ("failed", observed["reason"], ["a"])
    assert send(hub, run(started=started)) == "superseded"  # its last heartbeat, late
    assert send(hub, run(state="failed", **observed)) == "superseded"
    assert state_and_attempt(hub) == ("failed", 1)


def test_the_end_of_a_run_replaces_an_interruption_that_the_watcher_saw_first(hub: RunningHub) -> None:
    send(hub, run(results=["a"]))
    assert send(hub, run(state="interrupted", observed=True, reason="its Job was deleted")) == "updated"
    assert send(hub, run(state="finished", results=["a", "b"])) == "updated"
    assert hub.get("/api/v1/runs/r")["run"]["results"] == ["a", "b"]


def test_an_interruption_that_the_run_reports_does_not_replace_the_reason_that_the_watcher_saw(hub: RunningHub) -> None:
    send(hub, run())
    assert send(hub, run(state="interrupted", observed=True, reason="the node was drained")) == "updated"
    assert send(hub, run(state="interrupted", reason="by SIGTERM")) == "superseded"
    assert hub.get("/api/v1/runs/r")["run"]["reason"] == "the node was drained"


def test_the_watcher_does_not_replace_the_end_that_a_run_reported(hub: RunningHub) -> None:
    started = STARTED + timedelta(seconds=5)
    send(hub, run(state="finished", started=started))
    assert send(hub, run(state="failed", observed=True, reason="Error: exit code 1")) == "superseded"
    assert state_and_attempt(hub) == ("finished", 1)
    send(hub, run("i", state="interrupted", started=started, reason="by SIGTERM"))
    assert send(hub, run("i", state="failed", observed=True, reason="DeadlineExceeded")) == "updated"
    assert send(hub, run("i", state="running", attempt=2, started=started)) == "updated"


@pytest.mark.parametrize("own_start", [STARTED + timedelta(seconds=5), None], ids=["that reported itself", "silent"])
def test_an_interrupted_run_that_nothing_starts_again_fails(hub: RunningHub, own_start: datetime | None) -> None:
    if own_start:
        send(hub, run(started=own_start))
    evicted = {"observed": True, "reason": "Evicted"}
    send(hub, run(state="interrupted", **evicted))
    assert send(hub, run(state="failed", **evicted)) == "updated"
    assert send(hub, run(state="interrupted", **evicted)) == "superseded"
    assert state_and_attempt(hub) == ("failed", 1)


def test_a_run_that_has_finished_is_not_waiting_again(hub: RunningHub) -> None:
    send(hub, run(state="finished"))
    assert send(hub, run(observed=True, started=STARTED + timedelta(minutes=1))) == "superseded"
    assert state_and_attempt(hub) == ("finished", 1)


def test_pages_of_runs_start_with_the_running_ones(hub: RunningHub) -> None:
    for number in range(5):
        send(hub, run(f"r{number}", state="running" if number in (1, 3) else "finished"))
    names, cursor = [], ""
    while True:
        page = hub.get(f"/api/v1/runs?limit=2{cursor}")
        names += [item["run"]["id"] for item in page["runs"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert names == ["r3", "r1", "r4", "r2", "r0"]
    send(hub, run("job.1"))
    send(hub, run("job_1"))
    assert [item["run"]["id"] for item in hub.get("/api/v1/runs?prefix=job.")["runs"]] == ["job.1"]
    assert [item["run"]["id"] for item in hub.get("/api/v1/runs?prefix=job_")["runs"]] == ["job_1"]


def test_a_run_is_lost_from_three_missed_heartbeats_until_the_next_heartbeat(database: Database) -> None:
    interval = 15.0
    received = 1_000_000_000_000_000
    writes.put_run(database, run(heartbeat_seconds=interval), received=received)

    def state(seconds: float) -> str:
        with database.read() as connection:
            return run_queries.run(connection, "r", received + int(seconds * 1e6)).state

    assert [state(0), state(2.9 * interval), state(3.1 * interval)] == ["running", "running", "lost"]
    with database.read() as connection:
        overdue = received + int(4 * interval * 1e6)
        assert run_queries.run_counts(connection, overdue) == {
            "running": 0, "lost": 1, "finished": 0, "failed": 0, "interrupted": 0
        }  # fmt: skip
        assert [item.state for item in run_queries.runs(connection, overdue, 10).items] == ["lost"]
    writes.put_run(database, run(heartbeat_seconds=interval), received=received + int(5 * interval * 1e6))
    assert state(5 * interval) == "running"


def test_a_message_of_another_version_is_distinguished_from_an_invalid_one() -> None:
    body = run().model_dump_json()
    current = f'"schema_version":{MESSAGE_VERSION}'
    for version, kind in ((MESSAGE_VERSION + 1, "newer-schema"), (MESSAGE_VERSION - 1, "older-schema")):
        with pytest.raises(Problem) as caught:
            documents.run(body.replace(current, f'"schema_version":{version}').encode())
        assert caught.value.kind == kind
    with pytest.raises(Problem) as caught:
        documents.run(body.replace('"running"', '"walking"').encode())
    assert (caught.value.kind, caught.value.status) == ("invalid-document", 422)
    assert records.to_datetime(records.microseconds(STARTED)) == STARTED
