"""The runs of a Job: its indexes, their pods, and the number of each attempt. Pure functions."""

from __future__ import annotations

import json

from bench.watcher.prune import Object
from bench.watcher.reasons import end

WORKLOADS = "devbench/workloads"
WORKERS = "devbench/workers"
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"


def run_id(job: Object, index: int) -> str:
    """Return the id of a run: the Job's name, which `devbench await` searches for, the Job's UID, and the index."""
    return f"{job['metadata']['name']}.{job['metadata']['uid']}.{index}"


def attempt(pod: Object, started: bool) -> int:
    """Return the number of a pod's attempt, before or after the pod has started."""
    return attempt_number(failures(pod), started)


def attempt_number(failed: int, started: bool) -> int:
    """Return the number of an attempt: the digit 1, how many attempts failed before it, and 1 if it started, else 0.

    The numbers of started attempts are 101, 111, 121 and so on, as in DEVBENCH_ATTEMPT of the pods.
    """
    return int(f"1{failed}{int(started)}")


def failures(pod: Object) -> int:
    """Return how many pods of the same index failed before this one."""
    return int(pod.get("metadata", {}).get("annotations", {}).get(FAILURES) or 0)


def workloads(job: Object) -> list[str]:
    """Return what the indexes of a Job measure. The list is empty if its annotation is not the chart's."""
    try:
        names = json.loads(job["metadata"].get("annotations", {}).get(WORKLOADS, "[]"))
    except (ValueError, RecursionError):
        return []
    return [str(name) for name in names] if isinstance(names, list) else []


def workers(job: Object) -> int:
    """Return how many pods of a Job are the workers of one run, or 0 if the pool does not measure scaling."""
    count = job["metadata"].get("annotations", {}).get(WORKERS, "")
    return int(count) if count.isdecimal() and len(count) < 10 else 0


def reached(pod: Object) -> int:
    """Return the number of the attempt that an index is at, by a pod that has started."""
    return attempt_number(failures(pod) + 1, started=False) if is_evicted(pod) else attempt(pod, started=True)


def next_attempt(pod: Object | None, latest: int) -> int:
    """Return the number of the attempt that an index waits for. It is not lower than that of any earlier report.

    Args:
        pod: the last pod of the index. None if it is no longer there.
        latest: the latest number that the index has reached, or 0.
    """
    if pod is None:
        return max(attempt_number(0, started=False), latest)
    return max(reached(pod) if has_ended(pod) else attempt(pod, started=False), latest)


def has_ended(pod: Object | None) -> bool:
    """Return whether there is a pod that has ended."""
    return pod is not None and pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def uses_node(pod: Object) -> bool:
    """Return whether a pod has a node and has not ended."""
    return bool(pod.get("spec", {}).get("nodeName")) and not has_ended(pod)


def is_evicted(pod: Object) -> bool:
    """Return whether another pod is to replace this one."""
    return pod.get("status", {}).get("phase") == "Failed" and end(pod)[0] == "interrupted"


def order(pod: Object) -> tuple[int, str]:
    """Return a key that sorts the pods of an index by their attempt and age."""
    return attempt(pod, started=True), pod["metadata"].get("creationTimestamp") or ""


def index_of(pod: Object) -> int:
    """Return the index of a pod in its Job."""
    return int(pod["metadata"].get("annotations", {}).get(INDEX, 0))


def ended_indexes(job: Object) -> set[int]:
    """Return the indexes of a Job that have ended."""
    return indexes(job.get("status", {}).get("completedIndexes", "")) | failed_indexes(job)


def failed_indexes(job: Object) -> set[int]:
    """Return the indexes of a Job that have failed for good."""
    return indexes(job.get("status", {}).get("failedIndexes", ""))


def indexes(text: str) -> set[int]:
    """Parse indexes such as "0,2-4"."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        found |= set(range(int(low), int(high or low) + 1))
    return found
