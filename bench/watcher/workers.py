"""The states of runs of a pool with `workers`, from the objects of the API server. Pure functions.

The workers of a run are the pods of one Job. The pod with index 0 reports the run. The watcher reports the run before
that pod has started, and after it has ended. A report names the worker that is missing or has failed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.watcher.attempts import attempt, ended_indexes, has_ended, next_attempt, workers
from bench.watcher.pod_status import QUEUED, JobView, job_reports, pod_report, podless_reports
from bench.watcher.pool_queue import Wait
from bench.watcher.prune import Object
from bench.watcher.reasons import condition, container_ends, text_of
from bench.watcher.run_report import RunReport, report_of, with_patience


def run_reports(view: JobView, patience: float, wait: Wait) -> list[RunReport]:
    """Return the reports about the runs of any Job, at most one per run.

    Args:
        view: the Job.
        patience: seconds that a run may wait for a node before it counts as failed.
        wait: what the run waits for: the other runs on the same nodes.
    """
    count = workers(view.job)
    if not count:
        return job_reports(view, patience)
    reports = job_reports(view, math.inf) if count == 1 else _several(view)
    placed = any(pod.get("spec", {}).get("nodeName") for pod in view.latest.values())
    return [_after_others(report, placed, view, patience, wait) for report in reports]


def _several(view: JobView) -> list[RunReport]:
    """Return the report about a run of several workers. The list is empty if the run can report itself."""
    latest = view.latest
    first = latest.get(0)
    if 0 in ended_indexes(view.job) or (first and first.get("status", {}).get("phase") == "Succeeded"):
        return []
    if view.suspended:
        return podless_reports(replace(view, latest={}))
    problems = {index: report for index in sorted(latest) if (report := pod_report(view, latest[index]))}
    if first is None or has_ended(first):
        failed = [index for index, report in problems.items() if report.state != "waiting"]
        if failed:
            cause = min(failed, key=lambda index: _end(latest[index]))
            return [_failed(view.job, cause, problems[cause], first)]
    if first is None or first["status"].get("phase") != "Running":
        whole = podless_reports(replace(view, latest={0: first} if first else {}))
        if whole:
            return whole
    return _waiting(view, problems)


def _failed(job: Object, index: int, report: RunReport, first: Object | None) -> RunReport:
    """Return the report about a run that has failed because of one worker. Such a run never starts again."""
    reason = report.reason if index == 0 else f"worker {index}: {report.reason}"
    number = attempt(first or {}, started=True)
    return replace(report_of(job, 0, number, "failed", reason, first), node=report.node)


def _waiting(view: JobView, problems: Mapping[int, RunReport]) -> list[RunReport]:
    """Return the report about a run that waits for some of its workers: first for those without a node."""
    job, latest = view.job, view.latest
    reasons = {index: report.reason for index, report in problems.items() if report.state == "waiting"}
    event = view.failed_create
    if event is not None:
        reasons |= {index: text_of(event) for index in range(workers(job)) if index not in latest}
    if not reasons:
        return []
    nodes = {index: latest.get(index, {}).get("spec", {}).get("nodeName") for index in reasons}
    worst = min(reasons, key=lambda index: (nodes[index] is not None, index))
    alike = [index for index in sorted(reasons) if (nodes[index], reasons[index]) == (nodes[worst], reasons[worst])]
    first = latest.get(0)
    runs = first is not None and first["status"].get("phase") == "Running"
    number = attempt(first, started=True) if first and runs else next_attempt(first, view.started.get(0, 0))
    reason = f"Waiting for {_names(alike)}: {reasons[worst]}"
    report = report_of(job, 0, number, "waiting", reason, first)
    return [replace(report, node=nodes[worst] if not runs else report.node)]


def _after_others(report: RunReport, placed: bool, view: JobView, patience: float, wait: Wait) -> RunReport:
    """Return a report that takes the other runs on the same nodes into account. Waiting starts when the last one ended.

    Args:
        report: the report so far.
        placed: whether a pod of the run has a node.
        view: the Job.
        patience: seconds that a run may wait for a node before it counts as failed.
        wait: what the run waits for: the other runs on the same nodes.
    """
    if report.state != "waiting":
        return report
    if not placed and "Unschedulable" in report.reason:
        if wait.behind:
            return replace(report, reason=f"{QUEUED}: behind {wait.behind}")
        if wait.since:
            report = replace(report, since=max(report.since, wait.since))
    patient = with_patience(report, view.now, patience, view.excused, own_node=placed)
    never = patient.reason.replace("Waiting for ", "", 1).replace(": ", " never came: ", 1)
    is_group = patient.state == "failed" and patient.reason.startswith("Waiting for ")
    return replace(patient, reason=never) if is_group else patient


def _names(indexes: Sequence[int]) -> str:
    *others, last = map(str, indexes)
    return f"workers {', '.join(others)} and {last}" if others else f"worker {last}"


def _end(pod: Object) -> str:
    """Return when a pod ended, as text that sorts. A pod that was evicted before it ran has no such time."""
    status = pod["status"]
    disruption = condition(status, "DisruptionTarget") or {}
    times = (max(container_ends(pod), default=""), str(disruption.get("lastTransitionTime") or ""))
    return min(filter(None, times), default="")
