"""Waits until every run of some Jobs has ended at the hub, and says which of them have no good result.

A run is found by its id, which begins with its Job's name; of several Jobs of one name, made one after another, the
runs of the youngest count.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import urllib3

from bench.errors import DevbenchError, RunFailed, SettingsError

LISTED = 500
"""Runs that the hub is asked for at a time."""

PAUSE = 2.0
"""Seconds between two looks."""

Ask = Callable[[str], Any]
"""What the hub answers to the path of a GET."""


@dataclass(frozen=True)
class Outcome:
    """What became of one run.

    Attributes:
        name: the Job and the workload.
        done: whether it has ended.
        good: whether it ended with results, none of which failed.
        said: in words.
    """

    name: str
    done: bool
    good: bool
    said: str


def expected(words: Iterable[str]) -> dict[str, list[str]]:
    """Job: its workloads, from words such as "devbench-t4-1a2b3c4d=cifar,mnist".

    Raises:
        SettingsError: a word is none.
    """
    found = {}
    for word in words:
        job, _, named = word.partition("=")
        if not job or not named:
            raise SettingsError(f"'{word}' names no Job", "Write it as NAME=WORKLOAD,WORKLOAD.")
        found[job] = named.split(",")
    return found


def outcomes(jobs: Mapping[str, Sequence[str]], ask: Ask) -> list[Outcome]:
    """What became of each run, by what the hub knows now."""
    found = []
    for job, workloads in jobs.items():
        own = _runs(f"{job}.", ask)
        youngest = max(own, key=lambda each: str(each["run"]["started"]), default=None)
        uid = youngest["run"]["id"].split(".")[-2] if youngest else ""
        by_id = {each["run"]["id"]: each for each in own}
        for index, workload in enumerate(workloads):
            found.append(_outcome(f"{job} {workload}", by_id.get(f"{job}.{uid}.{index}"), ask))
    return found


def _runs(prefix: str, ask: Ask) -> list[Any]:
    """All runs whose ids begin so, page by page."""
    address = f"/api/v1/runs?limit={LISTED}&prefix={prefix}"
    told = ask(address)
    found = list(told["runs"])
    while told["next"] is not None:
        told = ask(f"{address}&cursor={told['next']}")
        found += told["runs"]
    return found


def wait(jobs: Mapping[str, Sequence[str]], ask: Ask, seconds: float, tell: Callable[[str], None]) -> None:
    """Waits until all runs have ended.

    Args:
        jobs: Job: its workloads.
        ask: asks the hub.
        seconds: to wait at most.
        tell: told each outcome, once.

    Raises:
        RunFailed: a run failed, or there is no good result of it in that time.
    """
    end = time.monotonic() + seconds
    seen: set[Outcome] = set()
    while True:
        try:
            now = outcomes(jobs, ask)
        except Silent as error:
            now = [Outcome(job, False, False, error.message) for job in jobs]
        for each in now:
            if each.done and each not in seen:
                seen.add(each)
                tell(f"{each.name}: {each.said}")
        if all(each.done for each in now) or time.monotonic() > end:
            break
        time.sleep(PAUSE)
    bad = [each for each in now if not each.good]
    if bad:
        many = "runs have" if len(bad) > 1 else "run has"
        raise RunFailed(
            f"{len(bad)} of {len(now)} {many} no good result", "\n".join(f"{b.name}: {b.said}" for b in bad)
        )


class Silent(DevbenchError):
    """The hub does not answer now."""


def asker(hub: str, token: str | None) -> Ask:
    """Asks a hub."""
    pool = urllib3.PoolManager(
        headers={"Authorization": f"Bearer {token}"} if token else {}, timeout=urllib3.Timeout(connect=5, read=30)
    )

    def ask(path: str) -> Any:
        try:
            answer = pool.request("GET", hub.rstrip("/") + path, retries=False)
        except urllib3.exceptions.HTTPError as error:
            raise Silent(f"the hub {hub} does not answer: {error}") from None
        if answer.status >= 500:
            raise Silent(f"the hub {hub} answered {answer.status}")
        if answer.status != 200:
            raise DevbenchError(f"the hub {hub} answered {answer.status} to {path}", "Its token may be another one.")
        return json.loads(answer.data)

    return ask


def _outcome(name: str, told: Any, ask: Ask) -> Outcome:
    if told is None:
        return Outcome(name, False, False, "missing: the hub has not heard of it")
    run, state = told["run"], told["state"]
    if state == "running":
        progress = run.get("progress") or {}
        return Outcome(
            name, False, False, f"not done: {progress.get('phase', 'running')} {progress.get('note', '')}".strip()
        )
    if state != "finished":
        again = state in ("interrupted", "lost")  # another attempt may come
        return Outcome(name, not again, False, f"{state}: {run.get('reason') or 'no reason is known'}")
    results = [ask(f"/api/v1/results/{each}") for each in run["results"]]
    failed = [each for each in results if each["status"] != "complete"]
    if failed or not results:
        said = "; ".join(f"{(each.get('failure') or {}).get('message', each['status'])}" for each in failed)
        return Outcome(name, True, False, f"failed: {said}" if said else "missing: it ended without a result")
    return Outcome(name, True, True, f"{len(results)} good result{'s' if len(results) > 1 else ''}")
