"""The loop of the watcher: it reports changes of the cluster to the hub at once, and waiting runs periodically.

The watcher stores nothing. After a restart it lists all objects and reports them again. The hub orders states by their
attempt and takes only new ones, so reporting a state twice changes nothing. What the watcher had not yet reported about
a deleted Job is lost at its restart. The hub then shows the runs of this Job as lost.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Iterable
from datetime import datetime, timezone

from bench.errors import DevbenchError
from bench.model.run_state import RunState
from bench.publish.hub.client import BRIEF, Client
from bench.publish.hub.errors import HubRefused, NotFromHub, UnknownToken
from bench.watcher.api import Change, Expired, Server, Unavailable, follow
from bench.watcher.health import Health
from bench.watcher.overdue import ENDED, overdue
from bench.watcher.pod_status import JOB
from bench.watcher.prune import ObjectKind
from bench.watcher.state import Send, Watcher

REVIEW = 5.0
"""Maximum seconds between two reviews of waiting runs, because a run can wait too long without any change."""

END_PAUSE = 10.0
"""Minimum seconds between two searches for Jobs to end."""

MAX_PAUSE = 30.0
"""Maximum pause before unsent states are sent again, in seconds."""


def sender(client: Client, health: Health) -> Send:
    """Return a function that sends states to a hub, without retries.

    A state that the hub refuses is only logged. If something else than a hub answers, the state is sent again later.

    Args:
        client: the client of the hub.
        health: is told whether the hub answers, and knows the token.
    """

    def send(state: RunState) -> None:
        try:
            outcome = client.put("runs", state.id, state.model_dump_json().encode(), BRIEF)
        except (UnknownToken, NotFromHub) as error:
            health.fails("hub", f"hub: {error.message}")
            raise
        except HubRefused as error:
            log(f"{error.message}. {error.hint}")
            return
        health.works("hub")
        reason = state.reason or (state.progress.note if state.progress else "")
        log(f"{state.id} {state.state} {reason} ({outcome})")

    return send


def run(
    server: Server, selector: str, patience: float, send: Send, health: Health, end_scheduled: bool = False
) -> None:
    """Watch forever.

    Args:
        server: the API server.
        selector: a selector of the labels of Jobs and pods.
        patience: seconds that a run may wait for a node before it counts as failed.
        send: sends a state to the hub.
        health: is told about each iteration, and what works.
        end_scheduled: whether to end Jobs of a CronJob that have waited for a node for longer than that.
    """
    changes: queue.Queue[Change | BaseException] = queue.Queue()
    kinds: dict[ObjectKind, str] = {"Job": selector, "Pod": selector, "Event": ""}
    for kind, labels in kinds.items():
        threading.Thread(target=_follow, args=(server, kind, labels, changes, health), name=kind, daemon=True).start()
    watcher, next_attempt, pause, next_end = Watcher(patience), 0.0, 1.0, 0.0
    while True:
        health.turn()
        for change in _queued(changes, 0.0 if watcher.unsent and time.monotonic() >= next_attempt else REVIEW):
            watcher.update(change)
        watcher.review(time.time())
        if end_scheduled and time.monotonic() >= next_end:
            next_end = time.monotonic() + END_PAUSE
            end_overdue(server, watcher, health)
        if not watcher.unsent or time.monotonic() < next_attempt:
            continue
        try:
            watcher.send(send)
            pause = 1.0
        except DevbenchError as error:
            log(f"{error.message}. Trying again in {pause:.0f} s; {len(watcher.unsent)} states are unsent.")
            next_attempt, pause = time.monotonic() + pause, min(2 * pause, MAX_PAUSE)


def end_overdue(server: Server, watcher: Watcher, health: Health) -> None:
    """End the Jobs that block the next Job of their CronJob. Their pods are read again first."""
    jobs = watcher.overdue_jobs(datetime.now(timezone.utc))
    if not jobs:
        health.works("end")
    for job in jobs:
        health.turn()
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]
        try:
            pods, _ = server.list("Pod", f"{JOB}={uid}")
            why = overdue(job, pods, datetime.now(timezone.utc), watcher.patience)
            if why and server.end(job, {ENDED: why}):
                log(f"ended the Job {name}, which blocked the next Job of its schedule: {why}")
            health.works("end")
        except Expired:
            continue
        except Unavailable as error:
            log(f"{error.message}. {error.hint}".rstrip())
            health.fails("end", f"end: {error.message}")
            return


def log(text: str) -> None:
    """Write a line to the pod's log."""
    print(text, file=sys.stderr, flush=True)


def _follow(
    server: Server, kind: ObjectKind, selector: str, changes: queue.Queue[Change | BaseException], health: Health
) -> None:
    try:
        follow(server, kind, selector, changes.put, log, health)
    except BaseException as error:  # ends the main thread too, and Kubernetes restarts the watcher
        changes.put(error)


def _queued(changes: queue.Queue[Change | BaseException], timeout: float) -> Iterable[Change]:
    """Yield all queued changes; wait up to `timeout` seconds for the first one."""
    while True:
        try:
            change = changes.get(timeout=timeout) if timeout else changes.get_nowait()
        except queue.Empty:
            return
        if isinstance(change, BaseException):
            raise change
        timeout = 0
        yield change
