"""What the objects of the API server say of runs: pure functions from Jobs, pods and events to states.

A run is one index of a Job, and each pod of that index an attempt. Words about a pod that has not begun count as an
attempt of their own, just before the pod's: so what the pod says itself always wins, whatever arrives first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, Literal

Object = dict[str, Any]
State = Literal["waiting", "failed", "interrupted"]

POOL = "devbench/pool"
WORKLOADS = "devbench/workloads"
INDEX = "batch.kubernetes.io/job-completion-index"
EVICTIONS = "batch.kubernetes.io/job-index-ignored-failure-count"
JOB = "batch.kubernetes.io/controller-uid"
QUEUE = "kueue.x-k8s.io/queue-name"

STARTING = frozenset({"ContainerCreating", "PodInitializing"})
"""Reasons of a container that waits, which say nothing yet; an event may say more."""


SLOW_START = 30.0
"""Seconds after which it is said of a pod that has a node, and nothing to complain of, that it starts still."""


@dataclass(frozen=True)
class Word:
    """What is to be said of one run.

    Attributes:
        id: the run's, as the chart gives it to the pod in DEVBENCH_RUN_ID.
        attempt: as DEVBENCH_ATTEMPT, or the one before it for a pod that has not begun.
        state: that it waits, has failed for good, or was interrupted and may start again.
        reason: Kubernetes' own word, such as Unschedulable, and the message that goes with it.
        workload: what it measures.
        pool: where.
        node: the node that its pod was given, if any.
        since: when that began.
    """

    id: str
    attempt: int
    state: State
    reason: str
    workload: str
    pool: str
    node: str | None
    since: datetime


def words(job: Object, pods: Iterable[Object], told: Mapping[str, Object], now: datetime, wait: float) -> list[Word]:
    """What is to be said of a Job's runs, at most one word a run.

    Args:
        job: the Job.
        pods: those that it made.
        told: the newest warning about each object, by the object's UID.
        now: the time.
        wait: seconds that a run may wait for a node before it counts as failed.
    """
    latest: dict[int, Object] = {}
    for pod in pods:
        index = _index(pod)
        if index not in latest or _order(pod) > _order(latest[index]):
            latest[index] = pod
    found = [word for pod in latest.values() if (word := _of_pod(job, pod, told, now))]
    spoken = {word.id for word in found}
    found += [word for word in _of_job(job, latest, told) if word.id not in spoken]
    return [_patience(word, now, wait) for word in found]


def gone(job: Object, pods: Iterable[Object]) -> list[Word]:
    """What is to be said of a Job's runs that had not ended when the Job was deleted."""
    ended = _numbers(job.get("status", {}).get("completedIndexes", "")) | _numbers(
        job.get("status", {}).get("failedIndexes", "")
    )
    latest = {_index(pod): pod for pod in sorted(pods, key=_order)}
    return [
        _word(job, index, attempt(pod, begun=True), "interrupted", "JobDeleted: the Job was removed or replaced", pod)
        for index, pod in latest.items()
        if index not in ended and pod.get("status", {}).get("phase") in ("Pending", "Running")
    ]


def run_id(job: Object, index: int) -> str:
    """The run's id: the Job's name, so that it can be found, its UID, so that it is one, and the index."""
    return f"{job['metadata']['name']}.{job['metadata']['uid']}.{index}"


def attempt(pod: Object, begun: bool) -> int:
    """The number of a pod's attempt: 11, 111, 121, … as DEVBENCH_ATTEMPT has it, and one less before it begins."""
    evictions = pod.get("metadata", {}).get("annotations", {}).get(EVICTIONS, "")
    return int(f"1{evictions}{int(begun)}")


def workloads(job: Object) -> list[str]:
    """The names of what its indexes measure."""
    named = job["metadata"].get("annotations", {}).get(WORKLOADS, "[]")
    return [str(name) for name in json.loads(named)]


def _of_pod(job: Object, pod: Object, told: Mapping[str, Object], now: datetime) -> Word | None:
    """The word on a pod, or none where all is well or it can speak for itself."""
    status, index = pod.get("status", {}), _index(pod)
    phase = status.get("phase")
    if phase == "Failed":
        return _word(job, index, attempt(pod, begun=True), *_ended(pod), pod)
    if phase == "Pending":
        word = _word(job, index, attempt(pod, begun=False), "waiting", _held(status) or _mounting(pod, told), pod)
        if not word.reason and word.node and (now - word.since).total_seconds() > SLOW_START:
            word = replace(word, reason="Starting: the node pulls the image or makes the container")
        return word if word.reason else None
    return None


def _ended(pod: Object) -> tuple[State, str]:
    """How a pod ended that failed: the most telling of its conditions, its own status, and its container's."""
    status = pod["status"]
    disrupted = _condition(status, "DisruptionTarget")
    if disrupted:
        return "interrupted", _said(disrupted)
    if status.get("reason"):  # Evicted, DeadlineExceeded, UnexpectedAdmissionError, …
        return "failed", _said(status)
    for container in status.get("containerStatuses", []):
        ended = container.get("state", {}).get("terminated")
        if ended:
            return "failed", _terminated(ended, pod)
    return "failed", "Failed: the pod says no reason"


def _terminated(ended: Object, pod: Object) -> str:
    if ended.get("reason") == "OOMKilled":
        limit = pod["spec"]["containers"][0].get("resources", {}).get("limits", {}).get("memory", "its limit")
        return f"OOMKilled: it needed more memory than {limit} (pools.{_pool(pod)}.memory)"
    if ended.get("reason") in (None, "Error", "Completed"):
        said = _complaint(ended.get("message") or "")
        return f"Error: exit code {ended.get('exitCode')}" + (f": {said}" if said else "")
    return _said(ended)


def _complaint(text: str) -> str:
    """What devbench complained of last, with its hint; else the last line of what the container wrote."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    last = max((place for place, line in enumerate(lines) if line.startswith("error: ")), default=len(lines) - 1)
    return " ".join(lines[max(last, 0) :]).removeprefix("error: ")


def _held(status: Object) -> str:
    """Why a pod is pending, by its conditions and its containers; "" where they don't say."""
    scheduled = _condition(status, "PodScheduled", "False")
    if scheduled:
        return _said(scheduled)
    for container in status.get("containerStatuses", []):
        waiting = container.get("state", {}).get("waiting", {})
        if waiting.get("reason") and waiting["reason"] not in STARTING:
            return _said(waiting)
    return ""


def _mounting(pod: Object, told: Mapping[str, Object]) -> str:
    """A volume or a sandbox that can't be had: only events tell it."""
    event = told.get(pod["metadata"]["uid"])
    if event is None or (event.get("reason") == "FailedScheduling" and pod["spec"].get("nodeName")):
        return ""  # that is over
    return _said(event)


def _of_job(job: Object, latest: Mapping[int, Object], told: Mapping[str, Object]) -> list[Word]:
    """Words on indexes that have no pod, or whose pods the Job took away when it failed as a whole."""
    status = job.get("status", {})
    ended = _numbers(status.get("completedIndexes", "")) | _numbers(status.get("failedIndexes", ""))
    left = [index for index in range(len(workloads(job))) if index not in ended]
    failed = _condition(status, "Failed") or _condition(status, "FailureTarget")
    if failed:
        return [
            _word(job, index, attempt(latest.get(index, {}), begun=True), "failed", _said(failed), latest.get(index))
            for index in left
            if not _finished(latest.get(index))
        ]
    absent = [index for index in left if index not in latest]
    reason = ""
    if job["spec"].get("suspend"):
        queue = job["metadata"].get("labels", {}).get(QUEUE)
        reason = f"Suspended: held by queue {queue}" if queue else "Suspended: spec.suspend is true"
    elif all(_finished(pod) for pod in latest.values()):
        event = told.get(job["metadata"]["uid"])
        newest = max((str(pod["metadata"].get("creationTimestamp") or "") for pod in latest.values()), default="")
        refused = event is not None and event.get("reason") == "FailedCreate" and when(event) >= newest
        reason = _said(event) if event is not None and refused else ""
    return [_word(job, index, 10, "waiting", reason, None) for index in absent] if reason else []


def _patience(word: Word, now: datetime, wait: float) -> Word:
    """A word on a run that waited too long for a node becomes its failure; a pod that begins later still counts."""
    waited = (now - word.since).total_seconds()
    if word.state == "waiting" and word.node is None and waited > wait and not word.reason.startswith("Suspended"):
        return replace(word, state="failed", reason=f"{word.reason} (waited {waited:.0f} s for a node)")
    return word


def _word(job: Object, index: int, number: int, state: State, reason: str, pod: Object | None) -> Word:
    named = workloads(job)
    born = (pod or job)["metadata"].get("creationTimestamp")
    return Word(
        id=run_id(job, index),
        attempt=number,
        state=state,
        reason=reason,
        workload=named[index] if index < len(named) else str(index),
        pool=_pool(job),
        node=(pod or {}).get("spec", {}).get("nodeName"),
        since=datetime.fromisoformat(born.replace("Z", "+00:00")) if born else datetime.now(timezone.utc),
    )


def _said(thing: Object) -> str:
    """Reason and message of a condition, a container's state, an event or a status, as one line."""
    reason, message = thing.get("reason") or "Unknown", " ".join((thing.get("message") or "").split())
    return f"{reason}: {message}" if message and message != reason else reason


def _condition(status: Object, kind: str, value: str = "True") -> Object | None:
    for each in status.get("conditions") or []:
        if each["type"] == kind and each["status"] == value:
            return dict(each)
    return None


def _finished(pod: Object | None) -> bool:
    return pod is not None and pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _order(pod: Object) -> tuple[int, str]:
    return attempt(pod, begun=True), pod["metadata"].get("creationTimestamp") or ""


def _index(pod: Object) -> int:
    return int(pod["metadata"].get("annotations", {}).get(INDEX, 0))


def _pool(thing: Object) -> str:
    return str(thing["metadata"].get("labels", {}).get(POOL, ""))


def _numbers(text: str) -> set[int]:
    """The indexes of "0,2-4"."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        found |= set(range(int(low), int(high or low) + 1))
    return found


def when(event: Object) -> str:
    """The moment of an event, as text that sorts."""
    series = event.get("series") or {}
    return str(
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event.get("metadata", {}).get("creationTimestamp")
        or ""
    )
