"""The loop of the watcher: it reports changes of the cluster to the hub at once, and waiting runs periodically.

The watcher stores nothing. After a restart it lists all objects and reports them again. The hub orders states by their
attempt and takes only new ones. So a restart on either side loses nothing.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timezone

from bench.errors import DevbenchError
from bench.model.run_state import Progress, RunState
from bench.publish.hub.client import BRIEF, Client, HubRefused
from bench.version import __version__
from bench.watcher.api import Change, Kind, Object, Server, follow
from bench.watcher.pod_status import JOB, Report, deleted_job_reports, event_time, job_reports

HEARTBEAT = 60.0
"""Seconds after which a waiting run is reported again."""

REVIEW = 5.0
"""Maximum seconds between two reviews of waiting runs, because a run can wait too long without any change."""

MAX_PAUSE = 30.0
"""Maximum pause before unsent states are sent again, in seconds."""

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
        self.reported: dict[str, dict[str, tuple[Report, float]]] = {}
        self.unsent: dict[str, Report] = {}
        self._changed: set[str] = set()

    def update(self, change: Change) -> None:
        """Take note of a change."""
        {"Job": self._update_jobs, "Pod": self._update_pods, "Event": self._update_events}[change.kind](change)

    def review(self, now: float) -> None:
        """Find what to report: changed runs, and again those that still wait.

        Args:
            now: seconds since 1970.
        """
        waiting = {
            uid
            for uid, reports in self.reported.items()
            if any(report.state == "waiting" for report, _ in reports.values())
        }
        for uid in (self._changed | waiting) & self.jobs.keys():
            self._review_job(uid, now)
        self._changed = set()

    def send(self, send: Send) -> None:
        """Send all unsent reports. What the hub does not accept stays unsent.

        Raises:
            DevbenchError: the hub is unavailable.
        """
        for run, report in list(self.unsent.items()):
            send(run_state(report))
            del self.unsent[run]

    def _review_job(self, uid: str, now: float) -> None:
        before, self.reported[uid] = self.reported.get(uid, {}), {}
        time_ = datetime.fromtimestamp(now, timezone.utc)
        for report in job_reports(self.jobs[uid], self.pods.get(uid, {}).values(), self.warnings, time_, self.patience):
            last_report, sent_at = before.get(report.id, (None, 0.0))
            waits = report.state == "waiting"
            if (
                last_report is not None
                and _is_repeated(last_report, report)
                and not (waits and now - sent_at >= HEARTBEAT)
            ):
                self.reported[uid][report.id] = (last_report, sent_at)
            else:
                self.reported[uid][report.id] = (report, now)
                self.unsent[report.id] = report

    def _update_jobs(self, change: Change) -> None:
        jobs = {job["metadata"]["uid"]: job for job in change.objects}
        if change.action == "DELETED":
            removed = set(jobs)
        else:
            removed = set(self.jobs) - set(jobs) if change.action == "LIST" else set()
        for uid in removed & self.jobs.keys():
            for report in deleted_job_reports(self.jobs.pop(uid), self.pods.pop(uid, {}).values()):
                self.unsent[report.id] = report
            self.reported.pop(uid, None)
        if change.action != "DELETED":
            self.jobs.update(jobs)
            self._changed |= jobs.keys()

    def _update_pods(self, change: Change) -> None:
        if change.action == "LIST":
            self._changed |= self.pods.keys()
            self.pods = {}
        for pod in change.objects:
            job = pod["metadata"].get("labels", {}).get(JOB, "")
            self._changed.add(job)
            if change.action == "DELETED":
                self.pods.get(job, {}).pop(pod["metadata"]["uid"], None)
                self.warnings.pop(pod["metadata"]["uid"], None)
            else:
                self.pods.setdefault(job, {})[pod["metadata"]["uid"]] = pod

    def _update_events(self, change: Change) -> None:
        if change.action == "LIST":
            self.warnings = {}
        for event in change.objects:
            subject = event["involvedObject"]
            is_warning = event.get("type") == "Warning" and subject.get("kind") in ("Job", "Pod")
            if change.action == "DELETED" or not is_warning:
                continue
            uid = subject.get("uid", "")
            if uid not in self.warnings or event_time(self.warnings[uid]) <= event_time(event):
                self.warnings[uid] = event
            self._changed.add(uid if uid in self.jobs else self._job_of(uid))

    def _job_of(self, pod: str) -> str:
        return next((job for job, pods in self.pods.items() if pod in pods), "")


def run_state(report: Report) -> RunState:
    """Return a report as the hub takes it. A waiting run is running, and the reason is in its progress."""
    waits = report.state == "waiting"
    return RunState(
        id=report.id,
        attempt=report.attempt,
        state="running" if report.state == "waiting" else report.state,
        title=report.workload,
        started=report.since,
        devbench=__version__,
        pool=report.pool,
        node=report.node,
        heartbeat_seconds=HEARTBEAT,
        progress=Progress(title=report.workload, phase="waiting", note=report.reason) if waits else None,
        reason="" if waits else report.reason,
        observed=True,
    )


def sender(client: Client) -> Send:
    """Return a function that sends states to a hub, without retries."""

    def send(state: RunState) -> None:
        try:
            outcome = client.put("runs", state.id, state.model_dump_json().encode(), BRIEF)
        except HubRefused as error:
            log(f"{error.message}. {error.hint}")
            return
        reason = state.reason or (state.progress.note if state.progress else "")
        log(f"{state.id} {state.state} {reason} ({outcome})")

    return send


def run(server: Server, selector: str, patience: float, send: Send) -> None:
    """Watch forever.

    Args:
        server: the API server.
        selector: labels of the Jobs and pods.
        patience: seconds that a run may wait for a node before it counts as failed.
        send: sends a state to the hub.
    """
    changes: queue.Queue[Change | BaseException] = queue.Queue()
    kinds: dict[Kind, str] = {"Job": selector, "Pod": selector, "Event": ""}
    for kind, labels in kinds.items():
        threading.Thread(target=_follow, args=(server, kind, labels, changes), name=kind, daemon=True).start()
    watcher, next_attempt, pause = Watcher(patience), 0.0, 1.0
    while True:
        for change in _queued(changes):
            watcher.update(change)
        watcher.review(time.time())
        if not watcher.unsent or time.monotonic() < next_attempt:
            continue
        try:
            watcher.send(send)
            pause = 1.0
        except DevbenchError as error:
            log(f"{error.message}. Trying again in {pause:.0f} s; {len(watcher.unsent)} states are unsent.")
            next_attempt, pause = time.monotonic() + pause, min(2 * pause, MAX_PAUSE)


def log(text: str) -> None:
    """Write a line to the pod's log."""
    print(text, file=sys.stderr, flush=True)


def _is_repeated(last: Report, report: Report) -> bool:
    """Return whether a report says the same as the last one. The reason of an ended run does not matter."""
    same = (last.attempt, last.state, last.node) == (report.attempt, report.state, report.node)
    return same and (report.state != "waiting" or last.reason == report.reason)


def _follow(server: Server, kind: Kind, selector: str, changes: queue.Queue[Change | BaseException]) -> None:
    try:
        follow(server, kind, selector, changes.put, log)
    except BaseException as error:  # ends the main thread too, and Kubernetes restarts the watcher
        changes.put(error)


def _queued(changes: queue.Queue[Change | BaseException]) -> Iterable[Change]:
    """Yield all queued changes; wait up to `REVIEW` for the first one."""
    timeout = REVIEW
    while True:
        try:
            change = changes.get(timeout=timeout) if timeout else changes.get_nowait()
        except queue.Empty:
            return
        if isinstance(change, BaseException):
            raise change
        timeout = 0
        yield change
