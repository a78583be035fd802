"""A report about one run, as the watcher sends it to the hub. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from bench.watcher.attempts import run_id, workloads
from bench.watcher.prune import Object
from bench.watcher.reasons import BUSY_NODE, PodState, moment, pool_of


@dataclass(frozen=True)
class RunReport:
    """A report about one run.

    Attributes:
        id: the run's id, as the chart passes it to the pod in DEVBENCH_RUN_ID.
        attempt: the number of the attempt, as in DEVBENCH_ATTEMPT, or one less if the pod has not started.
        state: whether the run waits, has failed for good, or was interrupted and may start again.
        reason: Kubernetes' reason, such as Unschedulable, and its message.
        workload: what the run measures.
        pool: the pool that it runs in.
        node: the node of its pod, or None if the pod has none.
        since: when the cause of the report occurred.
        may_wait: whether the run may wait as long as it has to, such as for another run on the node.
    """

    id: str
    attempt: int
    state: PodState
    reason: str
    workload: str
    pool: str
    node: str | None
    since: datetime
    may_wait: bool = False


def with_patience(
    report: RunReport, now: datetime, patience: float, excused: Mapping[str, datetime], own_node: bool = False
) -> RunReport:
    """Return a report that says "failed" if the run waited too long for a node.

    A run may wait forever if it is suspended or if another run uses the node. Its patience begins when that ends. If
    the run's pod starts later, the pod's own reports win.

    Args:
        report: the report so far.
        now: the current time.
        patience: seconds that a run may wait for a node before it counts as failed.
        excused: until when runs might wait forever, by id.
        own_node: whether the node that is in use may be in use by the run's own workers.
    """
    if report.state != "waiting":
        return report
    may_wait = report.reason.startswith("Suspended") or (BUSY_NODE in report.reason and not own_node)
    waited = (now - max(report.since, excused.get(report.id, report.since))).total_seconds()
    if report.node is None and waited > patience and not may_wait:
        return replace(report, state="failed", reason=f"{report.reason} (waited {waited:.0f} s for a node)")
    return replace(report, may_wait=may_wait)


def report_of(job: Object, index: int, number: int, state: PodState, reason: str, pod: Object | None) -> RunReport:
    """Return a report about a run.

    Args:
        job: the Job.
        index: the index of the run.
        number: the number of the attempt.
        state: the state of the run.
        reason: why it is in this state.
        pod: the pod of the attempt, or None if there is none.
    """
    names = workloads(job)
    created = moment((pod or job)["metadata"].get("creationTimestamp"))
    return RunReport(
        id=run_id(job, index),
        attempt=number,
        state=state,
        reason=reason,
        workload=names[index] if index < len(names) else str(index),
        pool=pool_of(job),
        node=(pod or {}).get("spec", {}).get("nodeName"),
        since=created or datetime.now(timezone.utc),
    )
