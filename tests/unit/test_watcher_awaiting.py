"""What `helm test` waits for: each run of some Jobs, by what a hub says of it."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from bench.errors import RunFailed, SettingsError
from bench.watcher.wait import expected, outcomes, wait

pytestmark = pytest.mark.once


def run(name: str, state: str = "finished", results: tuple[str, ...] = ("good",), **more: Any) -> dict[str, Any]:
    """A run as a hub lists it."""
    about = {"id": name, "started": "2026-11-22T05:00:00Z", "results": list(results), "reason": "", "progress": None}
    return {"run": {**about, **more}, "state": state}


class Hub:
    """A hub's answers: its runs, two a page, and results that are good, or failed as they are called."""

    def __init__(self, *runs: dict[str, Any]) -> None:
        self.runs = runs
        self.asked: list[str] = []

    def __call__(self, path: str) -> Any:
        self.asked.append(path)
        parts = urlsplit(path)
        if parts.path.startswith("/api/v1/results/"):
            name = parts.path.rpartition("/")[2]
            failed = name != "good"
            return {"status": "failed" if failed else "complete", "failure": {"message": name} if failed else None}
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        found = [each for each in self.runs if each["run"]["id"].startswith(asked["prefix"])]
        place = int(asked.get("cursor", 0))
        return {"runs": found[place : place + 2], "next": str(place + 2) if place + 2 < len(found) else None}


def test_jobs_are_named_with_their_workloads() -> None:
    assert expected(["a=cifar,mnist", "b=matmul"]) == {"a": ["cifar", "mnist"], "b": ["matmul"]}
    with pytest.raises(SettingsError, match="'a' names no Job"):
        expected(["a"])


@pytest.mark.parametrize(
    ("found", "done", "good", "said"),
    [
        (run("a.u.0"), True, True, "1 good result"),
        (run("a.u.0", results=("good", "good")), True, True, "2 good results"),
        (run("a.u.0", results=("good", "no-driver")), True, False, "failed: no-driver"),
        (run("a.u.0", results=()), True, False, "missing: it ended without a result"),
        (run("a.u.0", state="failed", reason="OOMKilled"), True, False, "failed: OOMKilled"),
        (run("a.u.0", state="interrupted", reason="Evicted"), False, False, "interrupted: Evicted"),
        (run("a.u.0", state="lost"), False, False, "lost: no reason is known"),
        (run("a.u.0", state="running", progress={"phase": "waiting", "note": "0/3 nodes"}), False, False, "0/3 nodes"),
        (run("b.u.0"), False, False, "missing: the hub has not heard of it"),
    ],
)
def test_each_run_is_judged_by_its_state_and_its_results(
    found: dict[str, Any], done: bool, good: bool, said: str
) -> None:
    (outcome,) = outcomes({"a": ["cifar"]}, Hub(found))
    assert (outcome.name, outcome.done, outcome.good) == ("a cifar", done, good)
    assert said in outcome.said


def test_of_jobs_of_one_name_the_youngest_counts_and_all_pages_are_read() -> None:
    old = [run(f"a.old.{n}", state="failed", started="2026-11-22T05:00:00Z") for n in range(3)]
    new = [run(f"a.new.{n}", started="2026-11-22T06:00:00Z") for n in range(3)]
    found = outcomes({"a": ["x", "y", "z"]}, Hub(*old, *new))
    assert [each.good for each in found] == [True] * 3
    assert outcomes({"a": ["x"]}, Hub(run("ab.u.0")))[0].said.startswith("missing")


def test_waiting_ends_with_all_done_and_tells_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.watcher.wait.PAUSE", 0.0)
    told: list[str] = []
    wait({"a": ["cifar", "mnist"]}, Hub(run("a.u.0"), run("a.u.1")), 60, told.append)
    assert told == ["a cifar: 1 good result", "a mnist: 1 good result"]
    with pytest.raises(RunFailed, match="1 of 2 run has no good result") as caught:
        wait({"a": ["cifar", "mnist"]}, Hub(run("a.u.0"), run("a.u.1", state="failed", reason="it broke")), 60, print)
    assert caught.value.hint == "a mnist: failed: it broke"
    with pytest.raises(RunFailed, match="1 of 1 run has no good result"):
        wait({"a": ["cifar"]}, Hub(run("a.u.0", state="running")), 0, print)
