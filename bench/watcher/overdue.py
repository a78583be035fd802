"""Which Jobs block the next Job of their CronJob, because there is no node for their pods. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from bench.watcher.attempts import has_ended, uses_node
from bench.watcher.prune import Object
from bench.watcher.reasons import BUSY_NODE, condition, container_ends, moment, text_of

ENDED = "devbench/ended"
"""Annotation of a Job that the watcher has ended: why."""

MANUAL = "cronjob.kubernetes.io/instantiate"
"""Annotation of a Job that was created from a CronJob by hand. The CronJob does not wait for it."""


def overdue(job: Object, pods: Iterable[Object], now: datetime, patience: float) -> str:
    """Return why a Job of a schedule gets no node, if it has waited for too long. "" if it has not, or may go on.

    A Job of which a pod uses a node goes on. So does one that waits for the node of another run, one that is suspended,
    and one whose pods cannot be created.

    Args:
        job: the Job.
        pods: its pods.
        now: the current time.
        patience: seconds for which it may wait, since its newest pod was created and since its last pod ended.
    """
    pods = list(pods)
    waiting = [pod for pod in pods if not has_ended(pod)]
    if not waiting or not _blocks(job) or any(map(uses_node, pods)):
        return ""
    refusals = [condition(pod.get("status", {}), "PodScheduled", "False") for pod in waiting]
    reasons = [text_of(refusal) for refusal in refusals if refusal]
    if len(reasons) < len(waiting) or any(BUSY_NODE in reason for reason in reasons):
        return ""
    waited = (now - max(_times(pods), default=now)).total_seconds()
    return f"{reasons[0]} (waited {waited:.0f} s for a node)" if waited > patience else ""


def _blocks(job: Object) -> bool:
    """Return whether a Job blocks the next one of its CronJob, and is neither suspended nor ending."""
    metadata, status = job["metadata"], job.get("status", {})
    scheduled = any(owner.get("kind") == "CronJob" for owner in metadata.get("ownerReferences") or [])
    by_hand = MANUAL in metadata.get("annotations", {})
    ending = metadata.get("deletionTimestamp") or ENDED in metadata.get("annotations", {})
    over = any(condition(status, kind) for kind in ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"))
    runs = bool(status.get("startTime")) and not job["spec"].get("suspend")
    return scheduled and runs and not by_hand and not ending and not over and not status.get("ready")


def _times(pods: Iterable[Object]) -> Iterator[datetime]:
    """Yield when each pod was created, and when its containers ended."""
    for pod in pods:
        texts = [pod["metadata"].get("creationTimestamp"), *container_ends(pod)]
        yield from (time for text in texts if (time := moment(text)))
