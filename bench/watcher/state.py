"""What the watcher knows of the cluster, and what it has to report about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timezone

from bench.model.run_state import TITLE, Progress, RunState
from bench.version import __version__
from bench.watcher.api import Change
from bench.watcher.attempts import index_of, reached, workers
from bench.watcher.overdue import overdue
from bench.watcher.pod_status import ENDED, JOB, QUEUED, JobView, deleted_job_reports, failed_since, latest_pods
from bench.watcher.pool_queue import PoolQueues
from bench.watcher.prune import Object
from bench.watcher.reasons import event_time
from bench.watcher.run_report import RunReport
from bench.watcher.workers import run_reports

HEARTBEAT = 60.0
"""Seconds after which a waiting run is reported again."""

QUEUED_HEARTBEAT = 900.0
"""The same for a run that waits for another run, because thousands of runs of a pool can wait."""

BATCH = 100
"""Reports that are sent before the watcher looks at new changes."""

LONGEST = 1000
"""Characters of a reason. A scheduler's message names every kind of node that does not fit."""

UNKNOWN = 1000
"""Warnings about unknown objects that are kept, because an event may arrive before its pod."""

Send = Callable[[RunState], None]
"""Sends a state to the hub. Raises DevbenchError if the hub is unavailable."""


class Watcher:
    """The state of the cluster, and the reports about it.

    Args:
        patience: seconds that a run may wait for a node before it counts as failed.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.jobs: dict[str, Object] = {}
        self.pods: dict[str, dict[str, Object]] = {}
        self.warnings: dict[str, Object] = {}
        self.unknown: dict[str, Object] = {}
        self.started: dict[str, dict[int, int]] = {}
        self.reported: dict[str, dict[str, tuple[RunReport, float]]] = {}
        self.unsent: dict[str, RunReport] = {}
        self._changed: set[str] = set()
        self._excused: dict[str, dict[str, datetime]] = {}

    def update(self, change: Change) -> None:
        """Apply a change to what is known of the cluster."""
        {"Job": self._update_jobs, "Pod": self._update_pods, "Event": self._update_events}[change.kind](change)

    def review(self, now: float) -> None:
        """Put into `unsent` what there is to report: changed runs, and again those that still wait.

        Args:
            now: seconds since 1970.
        """
        waiting = {
            uid
            for uid, reports in self.reported.items()
            if any(report.state == "waiting" for report, _ in reports.values())
        }
        queues = PoolQueues(self.jobs, self.pods)
        for uid in (self._changed | waiting) & self.jobs.keys():
            self._review_job(uid, now, queues)
        self._changed = set()

    def overdue_jobs(self, now: datetime) -> list[Object]:
        """Return the Jobs that block the next Job of their CronJob. The hub knows what their runs wait for."""
        return [
            job
            for uid, job in self.jobs.items()
            if overdue(job, self.pods.get(uid, {}).values(), now, self.patience)
            and not self.unsent.keys() & self.reported.get(uid, {}).keys()
        ]

    def send(self, send: Send) -> None:
        """Send the most urgent unsent reports. If `send` raises, its report comes last, and the rest stays unsent.

        Raises:
            DevbenchError: the hub is unavailable, or something else answered.
        """
        urgent = sorted(self.unsent.items(), key=lambda item: _is_queued(item[1]))
        for run, report in urgent[:BATCH]:
            self.unsent[run] = self.unsent.pop(run)  # a proxy may refuse this report only
            send(run_state(report))
            del self.unsent[run]

    def _review_job(self, uid: str, now: float, queues: PoolQueues) -> None:
        before = self.reported.get(uid, {})
        current = self.reported[uid] = dict(before)
        time_ = datetime.fromtimestamp(now, timezone.utc)
        job, started = self.jobs[uid], self.started.get(uid, {})
        latest = latest_pods(self.pods.get(uid, {}).values())
        excused = self._excused.setdefault(uid, {})
        view = JobView(job, latest, self.warnings, time_, started, excused)
        reports = run_reports(view, self.patience, queues.of(job))
        excused.update({report.id: time_ for report in reports if report.may_wait})
        if workers(job) > 1 and not reports:
            current.clear()  # no worker is missing any more
        told = {report.id for report in reports}
        reports += failed_since(job, (report for run, (report, _) in before.items() if run not in told))
        for report in reports:
            last_report, sent_at = before.get(report.id, (None, 0.0))
            due = report.state == "waiting" and now - sent_at >= _heartbeat(report)
            if last_report is not None and _is_repeated(last_report, report) and not due:
                current[report.id] = (last_report, sent_at)
            else:
                if last_report is not None:
                    report = _with_cause(report, last_report, int(report.id.rpartition(".")[2]) in started)
                current[report.id] = (report, now)
                self.unsent[report.id] = report

    def _review_before_removal(self, uid: str) -> None:
        """Review a Job that has changed since the last review, because what ended may be gone at the next one."""
        if uid in self._changed and uid in self.jobs:
            self._review_job(uid, datetime.now(timezone.utc).timestamp(), PoolQueues(self.jobs, self.pods))

    def _update_jobs(self, change: Change) -> None:
        jobs = {job["metadata"]["uid"]: job for job in change.objects}
        if change.action == "DELETED":
            removed = set(jobs)
        else:
            removed = set(self.jobs) - set(jobs) if change.action == "LIST" else set()
        now = datetime.now(timezone.utc)
        for uid in removed & self.jobs.keys():
            self._review_before_removal(uid)
            pods = self.pods.pop(uid, {})
            for report in deleted_job_reports(self.jobs.pop(uid), pods.values(), now, self.started.pop(uid, {})):
                self.unsent[report.id] = report
            self.reported.pop(uid, None)
            self._excused.pop(uid, None)
            for subject in (uid, *pods):
                self.warnings.pop(subject, None)
        if change.action != "DELETED":
            self.jobs.update(jobs)
            self._changed |= jobs.keys()
            self._adopt_warnings(jobs)

    def _update_pods(self, change: Change) -> None:
        if change.action == "LIST":
            self._changed |= self.pods.keys()
            for uid in {uid for pods in self.pods.values() for uid in pods} - {
                pod["metadata"]["uid"] for pod in change.objects
            }:
                self.warnings.pop(uid, None)
            self.pods = {}
        for pod in change.objects:
            uid, job = pod["metadata"]["uid"], pod["metadata"].get("labels", {}).get(JOB, "")
            if change.action == "DELETED":
                self._review_before_removal(job)
            self._changed.add(job)
            if pod.get("status", {}).get("phase") not in (None, "Pending"):
                started, index = self.started.setdefault(job, {}), index_of(pod)
                started[index] = max(started.get(index, 0), reached(pod))
            if change.action == "DELETED":
                self.pods.get(job, {}).pop(uid, None)
                self.warnings.pop(uid, None)
                if job not in self.jobs and not self.pods.get(job):  # its Job was deleted first
                    self.pods.pop(job, None)
                    self.started.pop(job, None)
            else:
                self.pods.setdefault(job, {})[uid] = pod
                self._adopt_warnings((uid,))

    def _update_events(self, change: Change) -> None:
        if change.action == "LIST":
            self.warnings, self.unknown = {}, {}
        for event in change.objects:
            subject = event["involvedObject"]
            is_warning = event.get("type") == "Warning" and subject.get("kind") in ("Job", "Pod")
            if change.action == "DELETED" or not is_warning:
                continue
            uid = subject.get("uid", "")
            job = uid if uid in self.jobs else self._job_of(uid)
            warnings = self.warnings if job else self.unknown
            if uid not in warnings or event_time(warnings[uid]) <= event_time(event):
                warnings.pop(uid, None)
                warnings[uid] = event
            while len(self.unknown) > UNKNOWN:
                del self.unknown[next(iter(self.unknown))]
            self._changed.add(job)

    def _adopt_warnings(self, uids: Iterable[str]) -> None:
        """Keep the warnings about objects that have become known."""
        self.warnings.update({uid: self.unknown.pop(uid) for uid in uids if uid in self.unknown})

    def _job_of(self, pod: str) -> str:
        return next((job for job, pods in self.pods.items() if pod in pods), "")


def run_state(report: RunReport) -> RunState:
    """Return a report as the hub takes it. A waiting run has the state "running", and its progress has the reason."""
    waits = report.state == "waiting"
    reason = report.reason if len(report.reason) <= LONGEST else report.reason[: LONGEST - 1] + "…"
    return RunState(
        id=report.id,
        attempt=report.attempt,
        state="running" if report.state == "waiting" else report.state,
        title=report.workload[:TITLE],
        started=report.since,
        devbench=__version__,
        pool=report.pool,
        node=report.node,
        heartbeat_seconds=_heartbeat(report),
        progress=Progress(title=report.workload, phase="waiting", note=reason) if waits else None,
        reason="" if waits else reason,
        observed=True,
    )


def _is_repeated(last: RunReport, report: RunReport) -> bool:
    """Return whether a report says the same as the last one. Reason and node of an ended run do not matter."""
    same = (last.attempt, last.state) == (report.attempt, report.state)
    return same and (report.state != "waiting" or (last.reason, last.node) == (report.reason, report.node))


def _is_queued(report: RunReport) -> bool:
    return report.reason.startswith(QUEUED)


def _heartbeat(report: RunReport) -> float:
    return QUEUED_HEARTBEAT if _is_queued(report) else HEARTBEAT


def _with_cause(report: RunReport, last: RunReport, started: bool) -> RunReport:
    """Add to the end of a run that never started what it waited for: a deadline alone explains nothing.

    A run of several workers can wait for one of them after it has started.
    """
    if started:
        waited = last.state == "waiting" and last.attempt == report.attempt
    else:
        waited = last.state != "interrupted" and last.attempt < report.attempt
    if report.state != "failed" or not waited or report.reason.startswith(ENDED):
        return report
    return replace(report, reason=f"{report.reason}. Before: {last.reason}")
