"""The parts of Kubernetes' objects that the watcher reads. It keeps only these, because a namespace can be large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

ObjectKind = Literal["Job", "Pod", "Event"]
Object = dict[str, Any]

LONGEST_MESSAGE = 2000
"""Characters of a message that are kept."""

_METADATA = (
    "name",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "ownerReferences",
)
_ANNOTATIONS = (
    "batch.kubernetes.io/job-completion-index",
    "batch.kubernetes.io/job-index-failure-count",
    "cronjob.kubernetes.io/instantiate",
    "devbench/ended",
    "devbench/workers",
    "devbench/workloads",
)
_POD_STATUS = ("phase", "reason", "message", "conditions", "startTime")
_EVENT = ("type", "reason", "series", "firstTimestamp", "lastTimestamp", "eventTime")


def prune(kind: ObjectKind, obj: Object) -> Object:
    """Return an object without the parts that nobody reads."""
    pruned = _PRUNE[kind](obj)
    metadata = obj.get("metadata", {})
    annotations = metadata.get("annotations") or {}
    return {
        "metadata": {
            **_pick(metadata, _METADATA),
            "annotations": {name: annotations[name] for name in _ANNOTATIONS if name in annotations},
        },
        **pruned,
    }


def _job(job: Object) -> Object:
    return {"spec": _pick(job.get("spec", {}), ("suspend",)), "status": job.get("status", {})}


def _pod(pod: Object) -> Object:
    """Prune a pod, or the pod of a bookmark, whose lists are null."""
    spec, status = pod.get("spec", {}), pod.get("status", {})
    containers = [_pick(container, ("name", "resources")) for container in spec.get("containers") or []]
    states = [
        _pick(container, ("name", "state"))
        for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    ]
    return {
        "spec": {**_pick(spec, ("nodeName",)), "containers": containers},
        "status": {**_pick(status, _POD_STATUS), "containerStatuses": states},
    }


def _event(event: Object) -> Object:
    subject = _pick(event.get("involvedObject", {}), ("kind", "name", "uid"))
    message = str(event.get("message") or "")[:LONGEST_MESSAGE]
    return {**_pick(event, _EVENT), "involvedObject": subject, "message": message}


def _pick(obj: Object, names: tuple[str, ...]) -> Object:
    return {name: obj[name] for name in names if name in obj}


_PRUNE: dict[ObjectKind, Callable[[Object], Object]] = {"Job": _job, "Pod": _pod, "Event": _event}
