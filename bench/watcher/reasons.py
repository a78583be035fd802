"""Why a pod waits or has ended, from its status and from events. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from bench.watcher.prune import Object

PodState = Literal["waiting", "failed", "interrupted"]

POOL = "devbench/pool"

STARTING = frozenset({"ContainerCreating", "PodInitializing"})
"""Reasons of waiting containers that explain nothing. An event may explain more."""

BUSY_NODE = "anti-affinity"
"""Part of the scheduler's message if a node fits, but another run uses it."""


def end(pod: Object) -> tuple[PodState, str]:
    """Return how a failed pod ended, and why: by its disruption, or else its own status, or else its containers."""
    status = pod["status"]
    disruption = condition(status, "DisruptionTarget")
    if disruption:
        return "interrupted", text_of(disruption)
    if status.get("reason"):  # Evicted, DeadlineExceeded, UnexpectedAdmissionError, …
        return "failed", text_of(status)
    for container in status.get("containerStatuses", []):
        terminated = container.get("state", {}).get("terminated")
        if terminated and terminated.get("exitCode") != 0:  # skips init containers that succeeded
            return "failed", _termination(terminated, pod)
    return "failed", "Failed: the pod gives no reason"


def _termination(terminated: Object, pod: Object) -> str:
    if terminated.get("reason") == "OOMKilled":
        limit = pod["spec"]["containers"][0].get("resources", {}).get("limits", {}).get("memory", "its limit")
        return f"OOMKilled: the run needed more memory than {limit} (pools.{pool_of(pod)}.memory)"
    if terminated.get("reason") in (None, "Error", "Completed"):
        error = _error_message(terminated.get("message") or "")
        return f"Error: exit code {terminated.get('exitCode')}" + (f": {error}" if error else "")
    return text_of(terminated)


def _error_message(text: str) -> str:
    """Return devbench's last error with its hint, or the container's last line if there is no error."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    last = max((number for number, line in enumerate(lines) if line.startswith("error: ")), default=len(lines) - 1)
    return " ".join(lines[max(last, 0) :]).removeprefix("error: ")


def pending_reason(status: Object) -> str:
    """Return why a pod is pending, by its conditions and its containers. "" if they do not say."""
    unscheduled = condition(status, "PodScheduled", "False")
    if unscheduled:
        return text_of(unscheduled)
    for container in status.get("containerStatuses", []):
        waiting = container.get("state", {}).get("waiting", {})
        if waiting.get("reason") and waiting["reason"] not in STARTING:
            return text_of(waiting)
    return ""


def warning_reason(pod: Object, warnings: Mapping[str, Object]) -> str:
    """Return the newest warning about a pod, or "" if there is none. Only events report a missing volume or sandbox."""
    event = warnings.get(pod["metadata"]["uid"])
    if event is None or (event.get("reason") == "FailedScheduling" and pod["spec"].get("nodeName")):
        return ""  # it has been scheduled since
    return text_of(event)


def text_of(source: Object) -> str:
    """Return reason and message of a condition, a container's state, an event or a status, as one line."""
    reason, message = source.get("reason") or "Unknown", " ".join((source.get("message") or "").split())
    return f"{reason}: {message}" if message and message != reason else reason


def condition(status: Object, kind: str, value: str = "True") -> Object | None:
    """Return the condition of a kind that has a value, or None."""
    for item in status.get("conditions") or []:
        if item["type"] == kind and item["status"] == value:
            return dict(item)
    return None


def pool_of(source: Object) -> str:
    """Return the pool of a Job or a pod."""
    return str(source["metadata"].get("labels", {}).get(POOL, ""))


def moment(text: str | None) -> datetime | None:
    """Parse a time of Kubernetes. Return None if there is none."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None


def container_ends(pod: Object) -> list[str]:
    """Return when the containers of a pod ended, as text of Kubernetes. Those that still run are left out."""
    states = (container.get("state", {}) for container in pod.get("status", {}).get("containerStatuses", []))
    ends = (state.get("terminated", {}).get("finishedAt") for state in states)
    return [str(end) for end in ends if end]


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
