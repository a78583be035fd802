"""The states of runs, from the objects of the API server. Pure functions.

A run is one index of a Job, and each pod of that index is an attempt. A report about a pod that has not started has an
attempt number of its own, just below the pod's. So the pod's own reports always win, in whatever order they arrive.
Each report carries the time of its own cause, because the hub drops a report that is older than what it knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from bench.watcher import overdue
from bench.watcher.attempts import (
    attempt,
    attempt_number,
    ended_indexes,
    failed_indexes,
    failures,
    has_ended,
    index_of,
    is_evicted,
    next_attempt,
    order,
    run_id,
    workloads,
)
from bench.watcher.prune import Object
from bench.watcher.reasons import (
    PodState,
    condition,
    container_ends,
    end,
    event_time,
    moment,
    pending_reason,
    text_of,
    warning_reason,
)
from bench.watcher.run_report import RunReport, report_of, with_patience

JOB = "batch.kubernetes.io/controller-uid"
QUEUES = ("kueue.x-k8s.io/queue-name", "devbench/queue")
"""Labels of a Job that name its queue: Kueue's own, and the chart's, which is used if a JobSet is in the queue."""


QUEUED = "Queued"
"""Start of the reason of a run that waits for another run. Other reasons say more."""

ENDED = "Ended by the watcher"
"""Start of the reason of a run whose Job the watcher has ended."""

SLOW_START = 30.0
"""Seconds after which a pod that has a node and no problem is reported as starting."""


@dataclass(frozen=True)
class JobView:
    """What is known about a Job at one moment.

    Args:
        job: the Job.
        latest: the pod of the latest attempt of each index.
        warnings: the newest warning event about each object, by the object's UID.
        now: the current time.
        started: the latest number that each index has reached, by index, if a pod of it started. The pod may be gone.
        excused: until when runs might wait for a node forever, by the run's id.
    """

    job: Object
    latest: Mapping[int, Object]
    warnings: Mapping[str, Object]
    now: datetime
    started: Mapping[int, int]
    excused: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def failure(self) -> Object | None:
        """The condition that the Job has failed as a whole, or None."""
        status = self.job.get("status", {})
        return condition(status, "Failed") or condition(status, "FailureTarget")

    @property
    def suspended(self) -> bool:
        """Whether the Job is suspended. Its pods are removed, and new ones are created when it is resumed."""
        return bool(self.job["spec"].get("suspend")) and self.failure is None

    @property
    def failed_create(self) -> Object | None:
        """The warning that a pod cannot be created. None if there is none, or if a pod was created after it."""
        event = self.warnings.get(self.job["metadata"]["uid"])
        if event is None or event.get("reason") != "FailedCreate":
            return None
        created = (str(pod["metadata"].get("creationTimestamp") or "") for pod in self.latest.values())
        return event if event_time(event) >= max(created, default="") else None


def job_reports(view: JobView, patience: float) -> list[RunReport]:
    """Return the reports about a Job's runs, at most one per run.

    Args:
        view: the Job.
        patience: seconds that a run may wait for a node before it counts as failed.
    """
    found = [report for pod in view.latest.values() if (report := pod_report(view, pod))]
    reports = [with_patience(report, view.now, patience, view.excused) for report in found]
    podless = [with_patience(report, view.now, patience, view.excused) for report in podless_reports(view)]
    podless += _queued_reports(view, reports)
    # If a pod was evicted, the report about the next attempt replaces the report about the pod.
    by_id: dict[str, RunReport] = {}
    for report in (*reports, *podless):
        if report.id not in by_id or report.attempt > by_id[report.id].attempt:
            by_id[report.id] = report
    return list(by_id.values())


def latest_pods(pods: Iterable[Object]) -> dict[int, Object]:
    """Return the pod of the latest attempt of each index."""
    return {index_of(pod): pod for pod in sorted(pods, key=order)}


def deleted_job_reports(
    job: Object, pods: Iterable[Object], now: datetime, started: Mapping[int, int] | None = None
) -> list[RunReport]:
    """Return the reports about runs that had not ended when their Job was deleted.

    Args:
        job: the Job.
        pods: the pods of the Job.
        now: the current time.
        started: the number of the latest attempt that started, by index.
    """
    status = job.get("status", {})
    if condition(status, "Complete") or condition(status, "Failed"):
        return []
    ended = ended_indexes(job)
    latest = latest_pods(pods)
    reason = "JobDeleted: the Job was deleted or replaced"
    reports = []
    for index in range(len(workloads(job))):
        pod = latest.get(index)
        if index in ended or (pod and has_ended(pod) and not is_evicted(pod)):
            continue
        if pod and not has_ended(pod):
            reports.append(report_of(job, index, attempt(pod, started=True), "interrupted", reason, pod))
        else:
            number = next_attempt(pod, (started or {}).get(index, 0))
            reports.append(replace(report_of(job, index, number, "interrupted", reason, None), since=now))
    return reports


def pod_report(view: JobView, pod: Object) -> RunReport | None:
    """Return the report about a pod, or None if it has no problem or can report itself.

    Args:
        view: the Job.
        pod: a pod of the Job.
    """
    job, status, index = view.job, pod.get("status", {}), index_of(pod)
    phase = status.get("phase")
    if phase == "Failed":
        if _is_withdrawn(view, pod):
            return None
        state, reason = end(pod)
        if state == "interrupted" and index in failed_indexes(job):
            state, reason = "failed", f"{reason} (evicted {failures(pod) + 1} times)"
        return report_of(job, index, attempt(pod, started=True), state, reason, pod)
    if phase == "Pending":
        reason = pending_reason(status) or warning_reason(pod, view.warnings)
        report = report_of(job, index, next_attempt(pod, view.started.get(index, 0)), "waiting", reason, pod)
        if not reason and report.node and (view.now - report.since).total_seconds() > SLOW_START:
            report = replace(report, reason="Starting: the node is pulling the image or creating the container")
        return report if report.reason else None
    return None


def podless_reports(view: JobView) -> list[RunReport]:
    """Return reports about indexes that have no pod, or whose pods were removed when the Job failed as a whole."""
    job, latest, started = view.job, view.latest, view.started
    status = job.get("status", {})
    ended = ended_indexes(job)
    remaining = [index for index in range(len(workloads(job))) if index not in ended]
    if view.failure:
        return [report for index in remaining if (report := _failed_with_job(view, index, view.failure))]
    without_pod = [index for index in remaining if index not in latest or _is_replaced(view, latest[index])]
    since = _needed_since(job, latest.values())
    reason = ""
    if view.suspended:
        labels = job["metadata"].get("labels", {})
        queue = next((labels[name] for name in QUEUES if name in labels), None)
        reason = f"Suspended: held by queue {queue}" if queue else "Suspended: spec.suspend is true"
        since = moment((condition(status, "Suspended") or {}).get("lastTransitionTime")) or since
    elif all(has_ended(pod) for pod in latest.values()):
        event = view.failed_create
        if event is not None:
            reason = text_of(event)
            if started:
                since = max(since, moment(event.get("firstTimestamp") or event_time(event)) or since)
    if not reason:
        return []
    return [
        replace(report_of(job, index, next_attempt(latest.get(index), started.get(index, 0)), "waiting", reason, None),
                since=since)
        for index in without_pod
    ]  # fmt: skip


def failed_since(job: Object, reports: Iterable[RunReport]) -> list[RunReport]:
    """Return which of the last reports about interrupted runs are out of date, because their index has failed since.

    The pod of such a run may be gone before the Job says that it replaces no more pods.
    """
    failed = failed_indexes(job)
    return [
        replace(report, state="failed", reason=f"{report.reason} (evicted too often)")
        for report in reports
        if report.state == "interrupted" and int(report.id.rpartition(".")[2]) in failed
    ]


def _failed_with_job(view: JobView, index: int, failure: Object) -> RunReport | None:
    """Return the report about an index that had not ended when its Job failed. None if its pod says why it ended."""
    job, pod = view.job, view.latest.get(index)
    if pod and has_ended(pod) and not is_evicted(pod):
        return None
    ended_because = job["metadata"].get("annotations", {}).get(overdue.ENDED)
    why = f"{ENDED}: {ended_because}" if ended_because else text_of(failure)
    latest = view.started.get(index, 0)
    if pod and not has_ended(pod):
        return report_of(job, index, attempt(pod, started=True), "failed", why, pod)
    report = report_of(job, index, max(attempt({}, started=True), next_attempt(pod, latest)), "failed", why, None)
    return replace(report, since=moment(failure.get("lastTransitionTime")) or report.since)


def _is_withdrawn(view: JobView, pod: Object) -> bool:
    """Return whether a failed pod was removed because its Job was suspended, such as by Kueue for another Job."""
    removed = bool(pod["metadata"].get("deletionTimestamp"))
    return view.suspended and removed and index_of(pod) not in failed_indexes(view.job)


def _is_replaced(view: JobView, pod: Object) -> bool:
    """Return whether another pod is to replace this one, which has ended."""
    return is_evicted(pod) or (pod.get("status", {}).get("phase") == "Failed" and _is_withdrawn(view, pod))


def _queued_reports(view: JobView, reports: Iterable[RunReport]) -> list[RunReport]:
    """Return reports about indexes that have no pod yet, because a Job runs only some of its pods at a time.

    If the first active pod waits too long for a node, the runs behind it count as failed too.
    """
    job, latest, names = view.job, view.latest, workloads(view.job)
    if view.suspended or view.failure:
        return []
    active = [index for index, pod in latest.items() if not has_ended(pod)]
    if not active or active[0] >= len(names):
        return []
    ended, first = ended_indexes(job), active[0]
    blocking = next((report for report in reports if report.id == run_id(job, first)), None)
    reason = f"{QUEUED}: behind {names[first]}" + (f", which waits: {blocking.reason}" if blocking else "")
    state: PodState = blocking.state if blocking and blocking.state != "interrupted" else "waiting"
    since = blocking.since if blocking else _needed_since(job, latest.values())
    return [
        replace(report_of(job, index, attempt_number(0, started=False), state, reason, None), since=since)
        for index in range(len(names))
        if index not in ended and index not in latest
    ]


def _needed_since(job: Object, pods: Iterable[Object]) -> datetime:
    """Return the time since when a Job needs its next pod: its start, its resumption, or the end of the last pod."""
    times = [job["metadata"].get("creationTimestamp"), job.get("status", {}).get("startTime")]
    for pod in pods:
        times += [*container_ends(pod), pod["metadata"].get("creationTimestamp")]
    return max((time for text in times if (time := moment(text))), default=datetime.now(timezone.utc))
