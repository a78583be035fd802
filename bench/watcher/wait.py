"""Waits until the hub shows that all runs of some Jobs have ended, and says which of them have no good result.

A run is found by its id, which starts with its Job's name. If several Jobs had this name, the latest one counts.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.errors import RunFailed, SettingsError
from bench.publish.hub.errors import HubRefused, HubUnavailable, UnknownToken
from bench.render import numbers

PAGE = 500
"""Runs per request."""

PAUSE = 2.0
"""Seconds between two queries."""

Get = Callable[[str], Any]
"""Queries the hub with GET for a path, and returns the JSON object in its answer, as `Client.get` does."""


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of one run so far.

    Attributes:
        name: the names of the Job and of the workload.
        ended: whether the run has ended for good. An interrupted or lost run may start again.
        good: whether it ended with results, all of which are complete.
        text: a description.
    """

    name: str
    ended: bool
    good: bool
    text: str


def parse_jobs(arguments: Iterable[str]) -> dict[str, list[str]]:
    """Return the workloads by Job, from arguments such as "devbench-t4-1a2b3c4d=cifar,mnist".

    Raises:
        SettingsError: an argument is invalid.
    """
    jobs = {}
    for argument in arguments:
        job, _, names = argument.partition("=")
        if not job or not names:
            raise SettingsError(f"invalid argument '{argument}'", "Write it as JOB=WORKLOAD,WORKLOAD.")
        jobs[job] = names.split(",")
    return jobs


def outcomes(jobs: Mapping[str, Sequence[str]], get: Get) -> list[RunOutcome]:
    """Return the current outcome of each run.

    Args:
        jobs: workloads by Job.
        get: queries the hub.

    Raises:
        HubUnavailable: the hub does not answer.
        HubRefused: the hub refuses a query for runs, or does not know the token.
    """
    outcomes_of_runs = []
    for job, workloads in jobs.items():
        own = re.compile(rf"{re.escape(job)}\.[^.]+\.\d+")  # the name of another Job may start with this one and a dot
        runs = {run["run"]["id"]: run for run in _runs(f"{job}.", get) if own.fullmatch(run["run"]["id"])}
        latest = max(runs.values(), key=lambda run: str(run["run"]["started"]), default=None)
        uid = latest["run"]["id"].split(".")[-2] if latest else ""
        for index, workload in enumerate(workloads):
            outcomes_of_runs.append(_outcome(f"{job} {workload}", runs.get(f"{job}.{uid}.{index}"), get))
    return outcomes_of_runs


def wait(jobs: Mapping[str, Sequence[str]], get: Get, seconds: float, log: Callable[[str], None]) -> None:
    """Wait until all runs have ended.

    Args:
        jobs: workloads by Job.
        get: queries the hub.
        seconds: maximum time to wait.
        log: receives each outcome, once.

    Raises:
        RunFailed: a run failed, or has no good result after that time.
        HubRefused: the hub refuses a query for runs, or does not know the token.
    """
    deadline = time.monotonic() + seconds
    logged: set[RunOutcome] = set()
    while True:
        try:
            current = outcomes(jobs, get)
        except HubUnavailable as error:
            current = [RunOutcome(job, False, False, error.message) for job in jobs]
        for outcome in current:
            if outcome.ended and outcome not in logged:
                logged.add(outcome)
                log(f"{outcome.name}: {outcome.text}")
        if all(outcome.ended for outcome in current) or time.monotonic() > deadline:
            break
        time.sleep(PAUSE)
    bad = [outcome for outcome in current if not outcome.good]
    if bad:
        raise RunFailed(
            f"{len(bad)} of {numbers.count(len(current), 'run')} without a good result",
            "\n".join(f"{outcome.name}: {outcome.text}" for outcome in bad),
        )


def _runs(prefix: str, get: Get) -> list[Any]:
    """Return all runs whose ids have a prefix, page by page.

    Raises:
        HubUnavailable: something else than a hub answered, such as a proxy.
    """
    path = f"/api/v1/runs?limit={PAGE}&prefix={prefix}"
    runs: list[Any] = []
    page: dict[str, Any] = {"next": ""}
    while page["next"] is not None:
        page = get(f"{path}&cursor={page['next']}" if page["next"] else path)
        if not isinstance(page.get("runs"), list) or "next" not in page:
            raise HubUnavailable("the address of the hub answered, but with no list of runs")
        runs += page["runs"]
    return runs


def _outcome(name: str, status: Any, get: Get) -> RunOutcome:
    """Return the outcome of a run.

    Args:
        name: the names of the Job and of the workload.
        status: what the hub says about the run, or None if the hub does not know it.
        get: queries the hub.
    """
    if status is None:
        return RunOutcome(name, False, False, "missing: the hub has no such run")
    run, state = status["run"], status["state"]
    if state == "running":
        progress = run.get("progress") or {}
        text = f"running: {progress.get('phase', '')} {progress.get('note', '')}".strip(" :")
        return RunOutcome(name, False, False, text)
    if state != "finished":
        may_retry = state in ("interrupted", "lost")
        return RunOutcome(name, not may_retry, False, f"{state}: {run.get('reason') or 'unknown reason'}")
    try:
        results = [get(f"/api/v1/results/{id_}") for id_ in run["results"]]
    except UnknownToken:
        raise
    except HubRefused as error:  # its sender may still send it
        return RunOutcome(name, False, False, f"finished, but a result is missing: {error.message}")
    if not results:
        return RunOutcome(name, True, False, "missing: the run ended without a result")
    failed = [result for result in results if result["status"] != "complete"]
    if failed:
        causes = "; ".join((result.get("failure") or {}).get("message", result["status"]) for result in failed)
        return RunOutcome(name, True, False, f"failed: {causes}")
    return RunOutcome(name, True, True, f"{len(results)} good result{'s' if len(results) > 1 else ''}")
