"""The wait for the results of Jobs, as in `helm test`, with the responses of a hub."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from bench.errors import RunFailed, SettingsError
from bench.publish.hub.errors import HubRefused
from bench.watcher.wait import outcomes, parse_jobs, wait

pytestmark = pytest.mark.once


def run(name: str, state: str = "finished", results: tuple[str, ...] = ("good",), **more: Any) -> dict[str, Any]:
    """Return a run in the format of the hub."""
    message = {"id": name, "started": "2026-11-22T05:00:00Z", "results": list(results), "reason": "", "progress": None}
    return {"run": {**message, **more}, "state": state}


class Hub:
    """The responses of a hub: runs, two per page, and results. A result failed unless its id is "good"."""

    def __init__(self, *runs: dict[str, Any]) -> None:
        self.runs = runs
        self.paths: list[str] = []

    def __call__(self, path: str) -> Any:
        self.paths.append(path)
        parts = urlsplit(path)
        if parts.path.startswith("/api/v1/results/"):
            name = parts.path.rpartition("/")[2]
            if name == "late":
                raise HubRefused("no such result")
            failed = name != "good"
            return {"status": "failed" if failed else "complete", "failure": {"message": name} if failed else None}
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        runs = [run for run in self.runs if run["run"]["id"].startswith(query["prefix"])]
        start = int(query.get("cursor", 0))
        return {"runs": runs[start : start + 2], "next": str(start + 2) if start + 2 < len(runs) else None}


def test_arguments_are_jobs_with_their_workloads() -> None:
    assert parse_jobs(["a=cifar,mnist", "b=matmul"]) == {"a": ["cifar", "mnist"], "b": ["matmul"]}
    with pytest.raises(SettingsError, match="invalid argument 'a'"):
        parse_jobs(["a"])


@pytest.mark.parametrize(
    ("response", "ended", "good", "text"),
    [
        (run("a.u.0"), True, True, "1 good result"),
        (run("a.u.0", results=("good", "good")), True, True, "2 good results"),
        (run("a.u.0", results=("good", "no-driver")), True, False, "failed: no-driver"),
        (run("a.u.0", results=("good", "late")), False, False, "a result is missing: no such result"),
        (run("a.u.0", results=()), True, False, "missing: the run ended without a result"),
        (run("a.u.0", state="failed", reason="OOMKilled"), True, False, "failed: OOMKilled"),
        (run("a.u.0", state="interrupted", reason="Evicted"), False, False, "interrupted: Evicted"),
        (run("a.u.0", state="lost"), False, False, "lost: unknown reason"),
        (run("a.u.0", state="running", progress={"phase": "waiting", "note": "0/3 nodes"}), False, False, "0/3 nodes"),
        (run("b.u.0"), False, False, "missing: the hub has no such run"),
    ],
)
def test_each_run_is_judged_by_its_state_and_its_results(
    response: dict[str, Any], ended: bool, good: bool, text: str
) -> None:
    (outcome,) = outcomes({"a": ["cifar"]}, Hub(response))
    assert (outcome.name, outcome.ended, outcome.good) == ("a cifar", ended, good)
    assert text in outcome.text


def test_the_latest_job_of_each_name_counts_and_all_pages_are_read() -> None:
    old = [run(f"a.old.{n}", state="failed", started="2026-11-22T05:00:00Z") for n in range(3)]
    new = [run(f"a.new.{n}", started="2026-11-22T06:00:00Z") for n in range(3)]
    runs = outcomes({"a": ["x", "y", "z"]}, Hub(*old, *new))
    assert [outcome.good for outcome in runs] == [True] * 3
    assert outcomes({"a": ["x"]}, Hub(run("ab.u.0")))[0].text.startswith("missing")
    later = [run(name, started="2026-11-22T07:00:00Z") for name in ("a.b.u.0", "a.mine")]
    assert outcomes({"a": ["x"]}, Hub(*new, *later))[0].good


def test_the_wait_goes_on_and_says_why_if_something_else_than_a_hub_answers() -> None:
    with pytest.raises(RunFailed) as failed:
        wait({"a": ["cifar"]}, lambda path: {"detail": "log in"}, 0.0, lambda line: None)
    assert "the address of the hub answered, but with no list of runs" in failed.value.hint


def test_the_wait_ends_when_all_runs_have_ended_and_each_is_logged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.watcher.wait.PAUSE", 0.0)
    logged: list[str] = []
    wait({"a": ["cifar", "mnist"]}, Hub(run("a.u.0"), run("a.u.1")), 60, logged.append)
    assert logged == ["a cifar: 1 good result", "a mnist: 1 good result"]
    with pytest.raises(RunFailed, match="1 of 2 runs without a good result") as caught:
        wait({"a": ["cifar", "mnist"]}, Hub(run("a.u.0"), run("a.u.1", state="failed", reason="it broke")), 60, print)
    assert caught.value.hint == "a mnist: failed: it broke"
    with pytest.raises(RunFailed, match="1 of 1 run without a good result"):
        wait({"a": ["cifar"]}, Hub(run("a.u.0", state="running")), 0, print)
