"""What a run of a pool with `workers` waits for. Pure functions.

The runs of such a pool use the same nodes, one run after the other. The anti-affinity of the chart's pods ensures this:
the scheduler reports the pods of all other runs as unschedulable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from bench.watcher.attempts import uses_node, workers, workloads
from bench.watcher.prune import Object
from bench.watcher.reasons import container_ends, moment, pool_of


@dataclass(frozen=True)
class Wait:
    """What a run waits for before it gets nodes.

    Attributes:
        behind: the run that uses the nodes, or None if no other run does.
        since: when the last other run ended, or None if none has.
    """

    behind: str | None = None
    since: datetime | None = None


class PoolQueues:
    """The runs of all pools with `workers`.

    Args:
        jobs: all Jobs, by UID.
        pods: all pods, by the UID of their Job, then by their own UID.
    """

    def __init__(self, jobs: Mapping[str, Object], pods: Mapping[str, Mapping[str, Object]]) -> None:
        self._pods = pods
        self._pools: dict[str, list[Object]] = {}
        for job in jobs.values():
            if workers(job):
                self._pools.setdefault(pool_of(job), []).append(job)

    def of(self, job: Object) -> Wait:
        """Return what a Job waits for. A Job of a pool without `workers` waits for no other."""
        uid = job["metadata"]["uid"]
        others = [other for other in self._pools.get(pool_of(job), []) if other["metadata"]["uid"] != uid]
        if not workers(job):
            return Wait()
        ends: list[datetime] = []
        for other in others:
            pods = self._pods.get(other["metadata"]["uid"], {}).values()
            if any(map(uses_node, pods)):
                return Wait(behind=_title(other))
            ends += _ends(pods)
        return Wait(since=max(ends, default=None))


def _title(job: Object) -> str:
    count = workers(job)
    return f"{', '.join(workloads(job))} with {count} worker{'s' if count > 1 else ''}"


def _ends(pods: Iterable[Object]) -> Iterator[datetime]:
    for pod in pods:
        yield from filter(None, map(moment, container_ends(pod)))
