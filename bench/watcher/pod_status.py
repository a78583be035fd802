"""The states of runs, from the objects of the API server. Pure functions.

A run is one index of a Job, and each pod of that index is an attempt. A report about a pod that has not started counts
as an attempt of its own, just before the pod's. So the pod's own reports always win, in whatever order they arrive.
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
"""Reasons of waiting containers that explain nothing. An event may explain more."""

SLOW_START = 30.0
"""Seconds after which a pod that has a node and no problem is reported as starting."""


@dataclass(frozen=True)
class Report:
    """A report about one run.

    Attributes:
        id: of the run, as the chart passes it to the pod in DEVBENCH_RUN_ID.
        attempt: as in DEVBENCH_ATTEMPT, or the one before it if the pod has not started.
        state: the run waits, has failed for good, or was interrupted and may start again.
        reason: Kubernetes' reason, such as Unschedulable, and its message.
        workload: what the run measures.
        pool: where it runs.
        node: of its pod, or None if it has none.
        since: when its pod or its Job was created.
    """

    id: str
    attempt: int
    state: State
    reason: str
    workload: str
    pool: str
    node: str | None
    since: datetime


def job_reports(
    job: Object, pods: Iterable[Object], warnings: Mapping[str, Object], now: datetime, patience: float
) -> list[Report]:
    """Return the reports about a Job's runs, at most one per run.

    Args:
        job: the Job.
        pods: of the Job.
        warnings: the newest warning event about each object, by the object's UID.
        now: the current time.
        patience: seconds that a run may wait for a node before it counts as failed.
    """
    latest: dict[int, Object] = {}
    for pod in pods:
        index = _index(pod)
        if index not in latest or _order(pod) > _order(latest[index]):
            latest[index] = pod
    reports = [report for pod in latest.values() if (report := _pod_report(job, pod, warnings, now))]
    reported = {report.id for report in reports}
    reports += [report for report in _podless_reports(job, latest, warnings) if report.id not in reported]
    return [_with_patience(report, now, patience) for report in reports]


def deleted_job_reports(job: Object, pods: Iterable[Object]) -> list[Report]:
    """Return the reports about runs that had not ended when their Job was deleted."""
    ended = _ended_indexes(job)
    latest = {_index(pod): pod for pod in sorted(pods, key=_order)}
    reason = "JobDeleted: the Job was deleted or replaced"
    return [
        _report(job, index, attempt(pod, started=True), "interrupted", reason, pod)
        for index, pod in latest.items()
        if index not in ended and pod.get("status", {}).get("phase") in ("Pending", "Running")
    ]


def run_id(job: Object, index: int) -> str:
    """Return the id of a run: the Job's name to find it by, its UID to make it unique, and the index."""
    return f"{job['metadata']['name']}.{job['metadata']['uid']}.{index}"


def attempt(pod: Object, started: bool) -> int:
    """Return the number of a pod's attempt: 11, 111, 121, … as in DEVBENCH_ATTEMPT, or one less before it starts."""
    evictions = pod.get("metadata", {}).get("annotations", {}).get(EVICTIONS, "")
    return int(f"1{evictions}{int(started)}")


def workloads(job: Object) -> list[str]:
    """Return what the indexes of a Job measure."""
    annotation = job["metadata"].get("annotations", {}).get(WORKLOADS, "[]")
    return [str(name) for name in json.loads(annotation)]


def _pod_report(job: Object, pod: Object, warnings: Mapping[str, Object], now: datetime) -> Report | None:
    """Return the report about a pod, or None if it has no problem or can report itself."""
    status, index = pod.get("status", {}), _index(pod)
    phase = status.get("phase")
    if phase == "Failed":
        return _report(job, index, attempt(pod, started=True), *_end(pod), pod)
    if phase == "Pending":
        reason = _pending_reason(status) or _warning_reason(pod, warnings)
        report = _report(job, index, attempt(pod, started=False), "waiting", reason, pod)
        if not reason and report.node and (now - report.since).total_seconds() > SLOW_START:
            report = replace(report, reason="Starting: the node is pulling the image or creating the container")
        return report if report.reason else None
    return None


def _end(pod: Object) -> tuple[State, str]:
    """Return how a failed pod ended: by its most specific condition, its own status, or its container's."""
    status = pod["status"]
    disruption = _condition(status, "DisruptionTarget")
    if disruption:
        return "interrupted", _text(disruption)
    if status.get("reason"):  # Evicted, DeadlineExceeded, UnexpectedAdmissionError, …
        return "failed", _text(status)
    for container in status.get("containerStatuses", []):
        terminated = container.get("state", {}).get("terminated")
        if terminated:
            return "failed", _termination(terminated, pod)
    return "failed", "Failed: the pod gives no reason"


def _termination(terminated: Object, pod: Object) -> str:
    if terminated.get("reason") == "OOMKilled":
        limit = pod["spec"]["containers"][0].get("resources", {}).get("limits", {}).get("memory", "its limit")
        return f"OOMKilled: the run needed more memory than {limit} (pools.{_pool(pod)}.memory)"
    if terminated.get("reason") in (None, "Error", "Completed"):
        error = _error_message(terminated.get("message") or "")
        return f"Error: exit code {terminated.get('exitCode')}" + (f": {error}" if error else "")
    return _text(terminated)


def _error_message(text: str) -> str:
    """Return devbench's last error with its hint, or the container's last line if there is no error."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    last = max((number for number, line in enumerate(lines) if line.startswith("error: ")), default=len(lines) - 1)
    return " ".join(lines[max(last, 0) :]).removeprefix("error: ")


def _pending_reason(status: Object) -> str:
    """Return why a pod is pending, by its conditions and its containers; "" if they do not say."""
    unscheduled = _condition(status, "PodScheduled", "False")
    if unscheduled:
        return _text(unscheduled)
    for container in status.get("containerStatuses", []):
        waiting = container.get("state", {}).get("waiting", {})
        if waiting.get("reason") and waiting["reason"] not in STARTING:
            return _text(waiting)
    return ""


def _warning_reason(pod: Object, warnings: Mapping[str, Object]) -> str:
    """Return the warning about a pod: only events report a missing volume or sandbox. "" if there is none."""
    event = warnings.get(pod["metadata"]["uid"])
    if event is None or (event.get("reason") == "FailedScheduling" and pod["spec"].get("nodeName")):
        return ""  # it has been scheduled since
    return _text(event)


def _podless_reports(job: Object, latest: Mapping[int, Object], warnings: Mapping[str, Object]) -> list[Report]:
    """Return reports about indexes that have no pod, or whose pods were removed when the Job failed as a whole."""
    status = job.get("status", {})
    ended = _ended_indexes(job)
    remaining = [index for index in range(len(workloads(job))) if index not in ended]
    failed = _condition(status, "Failed") or _condition(status, "FailureTarget")
    if failed:
        last_pods = {index: latest.get(index) for index in remaining}
        return [
            _report(job, index, attempt(pod or {}, started=True), "failed", _text(failed), pod)
            for index, pod in last_pods.items()
            if not _has_ended(pod)
        ]
    without_pod = [index for index in remaining if index not in latest]
    reason = ""
    if job["spec"].get("suspend"):
        queue = job["metadata"].get("labels", {}).get(QUEUE)
        reason = f"Suspended: held by queue {queue}" if queue else "Suspended: spec.suspend is true"
    elif all(_has_ended(pod) for pod in latest.values()):
        event = warnings.get(job["metadata"]["uid"])
        newest = max((str(pod["metadata"].get("creationTimestamp") or "") for pod in latest.values()), default="")
        refused = event is not None and event.get("reason") == "FailedCreate" and event_time(event) >= newest
        reason = _text(event) if event is not None and refused else ""
    return [_report(job, index, 10, "waiting", reason, None) for index in without_pod] if reason else []


def _with_patience(report: Report, now: datetime, patience: float) -> Report:
    """Report a run that waited too long for a node as failed. If its pod starts later, the pod's reports win."""
    waited = (now - report.since).total_seconds()
    suspended = report.reason.startswith("Suspended")
    if report.state == "waiting" and report.node is None and waited > patience and not suspended:
        return replace(report, state="failed", reason=f"{report.reason} (waited {waited:.0f} s for a node)")
    return report


def _report(job: Object, index: int, number: int, state: State, reason: str, pod: Object | None) -> Report:
    names = workloads(job)
    created = (pod or job)["metadata"].get("creationTimestamp")
    return Report(
        id=run_id(job, index),
        attempt=number,
        state=state,
        reason=reason,
        workload=names[index] if index < len(names) else str(index),
        pool=_pool(job),
        node=(pod or {}).get("spec", {}).get("nodeName"),
        since=datetime.fromisoformat(created.replace("Z", "+00:00")) if created else datetime.now(timezone.utc),
    )


def _text(source: Object) -> str:
    """Return reason and message of a condition, a container's state, an event or a status, as one line."""
    reason, message = source.get("reason") or "Unknown", " ".join((source.get("message") or "").split())
    return f"{reason}: {message}" if message and message != reason else reason


def _condition(status: Object, kind: str, value: str = "True") -> Object | None:
    for condition in status.get("conditions") or []:
        if condition["type"] == kind and condition["status"] == value:
            return dict(condition)
    return None


def _has_ended(pod: Object | None) -> bool:
    return pod is not None and pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _order(pod: Object) -> tuple[int, str]:
    return attempt(pod, started=True), pod["metadata"].get("creationTimestamp") or ""


def _index(pod: Object) -> int:
    return int(pod["metadata"].get("annotations", {}).get(INDEX, 0))


def _pool(source: Object) -> str:
    return str(source["metadata"].get("labels", {}).get(POOL, ""))


def _ended_indexes(job: Object) -> set[int]:
    status = job.get("status", {})
    return _indexes(status.get("completedIndexes", "")) | _indexes(status.get("failedIndexes", ""))


def _indexes(text: str) -> set[int]:
    """Parse indexes such as "0,2-4"."""
    indexes: set[int] = set()
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        indexes |= set(range(int(low), int(high or low) + 1))
    return indexes


def event_time(event: Object) -> str:
    """Return the time of an event as text that sorts."""
    series = event.get("series") or {}
    return str(
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event.get("metadata", {}).get("creationTimestamp")
        or ""
    )
