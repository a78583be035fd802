"""Keeps the hub informed: every change of the cluster's objects becomes words at once, what waits is said again.

Nothing is kept that can't be read again. A watcher that starts anew lists everything and says it once more, and the
hub, which knows states by their attempt, takes what is new; so a restart on either side loses nothing.
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
from bench.publish.hub.client import BRIEF, Client, Refused
from bench.version import __version__
from bench.watcher.api import Change, Kind, Object, Server, follow
from bench.watcher.pod_status import JOB, Word, gone, when, words

HEARTBEAT = 60.0
"""Seconds after which a run that waits is said to wait still."""

REVIEW = 5.0
"""Seconds between two looks at what waits, since patience ends without any change."""

Say = Callable[[RunState], None]


class Watcher:
    """What is known of the cluster, and what has been said of it.

    Args:
        wait: seconds that a run may wait for a node.
    """

    def __init__(self, wait: float) -> None:
        self.wait = wait
        self.jobs: dict[str, Object] = {}
        self.pods: dict[str, dict[str, Object]] = {}
        self.warnings: dict[str, Object] = {}
        self.said: dict[str, dict[str, tuple[Word, float]]] = {}
        self.unsaid: dict[str, Word] = {}
        self._changed: set[str] = set()

    def take(self, change: Change) -> None:
        """Learns of a change."""
        {"Job": self._job, "Pod": self._pod, "Event": self._event}[change.kind](change)

    def review(self, now: float) -> None:
        """Finds what is to be said: of what has changed, and again of what still waits.

        Args:
            now: seconds since 1970.
        """
        waiting = {uid for uid, said in self.said.items() if any(word.state == "waiting" for word, _ in said.values())}
        for uid in (self._changed | waiting) & self.jobs.keys():
            self._words(uid, now)
        self._changed = set()

    def speak(self, say: Say) -> None:
        """Says what is to be said; what the hub does not take now stays.

        Raises:
            DevbenchError: the hub does not answer.
        """
        for run, word in list(self.unsaid.items()):
            say(state(word))
            del self.unsaid[run]

    def _words(self, uid: str, now: float) -> None:
        before, self.said[uid] = self.said.get(uid, {}), {}
        moment = datetime.fromtimestamp(now, timezone.utc)
        for word in words(self.jobs[uid], self.pods.get(uid, {}).values(), self.warnings, moment, self.wait):
            known, at = before.get(word.id, (None, 0.0))
            same = known is not None and (known.attempt, known.state, known.node) == (
                word.attempt,
                word.state,
                word.node,
            )
            old = same and known is not None and (word.state != "waiting" or known.reason == word.reason)
            if old and (word.state != "waiting" or now - at < HEARTBEAT):
                self.said[uid][word.id] = (known or word, at)
            else:
                self.said[uid][word.id] = (word, now)
                self.unsaid[word.id] = word

    def _job(self, change: Change) -> None:
        found = {each["metadata"]["uid"]: each for each in change.objects}
        lost = (
            set(found) if change.what == "DELETED" else set(self.jobs) - set(found) if change.what == "ALL" else set()
        )
        for uid in lost & self.jobs.keys():
            for word in gone(self.jobs.pop(uid), self.pods.pop(uid, {}).values()):
                self.unsaid[word.id] = word
            self.said.pop(uid, None)
        if change.what != "DELETED":
            self.jobs.update(found)
            self._changed |= found.keys()

    def _pod(self, change: Change) -> None:
        if change.what == "ALL":
            self._changed |= self.pods.keys()
            self.pods = {}
        for pod in change.objects:
            job = pod["metadata"].get("labels", {}).get(JOB, "")
            self._changed.add(job)
            if change.what == "DELETED":
                self.pods.get(job, {}).pop(pod["metadata"]["uid"], None)
                self.warnings.pop(pod["metadata"]["uid"], None)
            else:
                self.pods.setdefault(job, {})[pod["metadata"]["uid"]] = pod

    def _event(self, change: Change) -> None:
        if change.what == "ALL":
            self.warnings = {}
        for event in change.objects:
            about = event["involvedObject"]
            if change.what == "DELETED" or event.get("type") != "Warning" or about.get("kind") not in ("Job", "Pod"):
                continue
            uid = about.get("uid", "")
            if uid not in self.warnings or when(self.warnings[uid]) <= when(event):
                self.warnings[uid] = event
            self._changed.add(uid if uid in self.jobs else self._job_of(uid))

    def _job_of(self, pod: str) -> str:
        return next((job for job, pods in self.pods.items() if pod in pods), "")


def state(word: Word) -> RunState:
    """A word as the hub takes it: what waits goes on, with the reason in place of progress."""
    waits = word.state == "waiting"
    return RunState(
        id=word.id,
        attempt=word.attempt,
        state="running" if word.state == "waiting" else word.state,
        title=word.workload,
        started=word.since,
        devbench=__version__,
        pool=word.pool,
        node=word.node,
        heartbeat_seconds=HEARTBEAT,
        progress=Progress(title=word.workload, phase="waiting", note=word.reason) if waits else None,
        reason="" if waits else word.reason,
        observed=True,
    )


def sayer(client: Client) -> Say:
    """Sends states to a hub, without waiting for one that is away."""

    def say(word: RunState) -> None:
        try:
            outcome = client.put("runs", word.id, word.model_dump_json().encode(), BRIEF)
        except Refused as error:
            log(f"{error.message}. {error.hint}")
            return
        log(f"{word.id} {word.state} {word.reason or (word.progress.note if word.progress else '')} ({outcome})")

    return say


def run(server: Server, selector: str, wait: float, say: Say) -> None:
    """Watches for ever.

    Args:
        server: the API server.
        selector: labels of the Jobs and pods that count.
        wait: seconds that a run may wait for a node.
        say: sends a state to the hub; raises DevbenchError where it does not answer.
    """
    changes: queue.Queue[Change | BaseException] = queue.Queue()
    kinds: dict[Kind, str] = {"Job": selector, "Pod": selector, "Event": ""}
    for kind, labels in kinds.items():
        threading.Thread(target=_thread, args=(server, kind, labels, changes), name=kind, daemon=True).start()
    watcher, later, pause = Watcher(wait), 0.0, 1.0
    while True:
        for change in _waiting(changes):
            watcher.take(change)
        watcher.review(time.time())
        if not watcher.unsaid or time.monotonic() < later:
            continue
        try:
            watcher.speak(say)
            pause = 1.0
        except DevbenchError as error:
            log(f"{error.message}; {len(watcher.unsaid)} states wait, again in {pause:.0f} s")
            later, pause = time.monotonic() + pause, min(2 * pause, 30.0)


def log(text: str) -> None:
    """A line for whoever reads the pod's log."""
    print(text, file=sys.stderr, flush=True)


def _thread(server: Server, kind: Kind, selector: str, changes: queue.Queue[Change | BaseException]) -> None:
    try:
        follow(server, kind, selector, changes.put, log)
    except BaseException as error:  # the main thread ends with it, and Kubernetes starts the watcher anew
        changes.put(error)


def _waiting(changes: queue.Queue[Change | BaseException]) -> Iterable[Change]:
    """Everything that has come in, after waiting some seconds for the first."""
    limit = REVIEW
    while True:
        try:
            change = changes.get(timeout=limit) if limit else changes.get_nowait()
        except queue.Empty:
            return
        if isinstance(change, BaseException):
            raise change
        limit = 0
        yield change
