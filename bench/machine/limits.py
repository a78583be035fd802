"""How much CPU and memory this process may really use, and how often it was held back.

TensorFlow sizes its thread pools by the CPUs it sees and knows nothing of a container's quota: on a 64-core
node with a limit of 2 CPUs it starts 64 threads, which use up a period's quota in a few milliseconds and are
then all stopped for the rest of it. So threads follow `thread_count` here. Outside Linux there are no control
groups, and the plain answers hold.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.machine.cgroup import Level, levels
from bench.machine.system import ROOT

# Version 1 writes "no limit" as the largest multiple of the page size below 2**63; nothing real comes near this.
_UNLIMITED = 1 << 60


@dataclass(frozen=True)
class Throttling:
    """How often and how long the CPU quota held this process's groups back, since they were made.

    Attributes:
        periods: periods (of 100 ms, mostly) in which the quota ran out.
        seconds: time held back. Version 1 and 2 count it on each CPU, so it may exceed the wall time. Groups
            above one another are added up.
    """

    periods: int
    seconds: float


def affinity() -> int:
    """CPUs that the scheduler may put this process on; all of them where the system does not tell."""
    if sys.platform == "linux":
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def cpuset() -> str | None:
    """The CPUs that this may run on as Linux writes them, such as "0-3,8"; none where nobody tells."""
    if sys.platform == "linux":
        return ranges(os.sched_getaffinity(0))
    return None


def ranges(ids: Collection[int]) -> str:
    """Numbers as Linux writes them: {0, 1, 2, 5} is "0-2,5"."""
    starts = sorted(n for n in ids if n - 1 not in ids)
    ends = sorted(n for n in ids if n + 1 not in ids)
    return ",".join(f"{a}-{b}" if b > a else str(a) for a, b in zip(starts, ends, strict=True))


def cpu_quota(root: Path = ROOT) -> float | None:
    """The tightest CPU quota over this process in CPUs, such as 1.5; none where there is none."""
    return min(_quotas(levels("cpu", root)), default=None)


def _quotas(groups: list[Level]) -> Iterator[float]:
    for level in groups:
        if level.version == 1:
            quota, period = level.number("cpu.cfs_quota_us"), level.number("cpu.cfs_period_us")
        else:
            words = (level.text("cpu.max") or "max").split()
            quota = int(words[0]) if words[0].isdigit() else None
            period = int(words[1]) if len(words) > 1 and words[1].isdigit() else 100_000  # the kernel's default
        if quota and period and quota > 0:
            yield quota / period


def cpu_limit(root: Path = ROOT) -> float:
    """CPUs that may be used: the affinity or the tightest quota above this process, whichever is less.

    Args:
        root: the folder that stands for `/`.
    """
    quota = cpu_quota(root)
    return float(affinity()) if quota is None else min(float(affinity()), quota)


def thread_count(root: Path = ROOT) -> int:
    """Threads that can all run all the time: the CPU limit rounded down, at least 1.

    Rounded down, also from 1.9: with one thread more than the quota pays for, each period ends with every thread
    stopped, and a parallel operation waits for its slowest part; the loss shows as noise, not as a slower step.
    Whoever wants the fraction too asks for threads in so many words, or for whole CPUs.
    """
    return max(1, math.floor(cpu_limit(root)))


def memory_limit(root: Path = ROOT) -> int | None:
    """The tightest memory limit over this process in bytes; none where there is none."""
    return min((limit for level in levels("memory", root) for limit in _limits(level)), default=None)


def _limits(level: Level) -> Iterator[int]:
    if level.version == 1:
        # The second tells limits of groups above, which a container does not see.
        found = (level.number("memory.limit_in_bytes"), level.table("memory.stat").get("hierarchical_memory_limit"))
    else:
        found = (level.number("memory.max"), None)
    for limit in found:
        if limit is not None and limit < _UNLIMITED:
            yield limit


def memory_available(root: Path = ROOT) -> int:
    """Bytes that can still be had without swapping and without meeting a limit.

    That is the system's available memory, or what is left of the tightest limit. The files that the kernel keeps
    in memory but would drop count as free, as they do for the system's figure and for Kubernetes' working set.
    """
    import psutil

    left = [int(psutil.virtual_memory().available)]
    for level in levels("memory", root):
        used = _used(level, "inactive_file")
        if used is not None:
            left += [max(0, limit - used) for limit in _limits(level)]
    return min(left)


def _used(level: Level, *droppable: str) -> int | None:
    """Bytes that a group holds, less these kinds of memory by their names in version 2; none where it is not told."""
    used = level.number("memory.usage_in_bytes" if level.version == 1 else "memory.current")
    if used is None:
        return None
    stat, prefix = level.table("memory.stat"), "total_" if level.version == 1 else ""
    return used - sum(stat.get(prefix + kind, 0) for kind in droppable)


@dataclass(frozen=True)
class Room:
    """How much of a memory limit is in use.

    Attributes:
        limit: bytes.
        used: bytes that the kernel can't get back by dropping files from memory.
    """

    limit: int
    used: int

    @property
    def left(self) -> int:
        """Bytes until the kernel ends processes."""
        return self.limit - self.used


def memory_room(groups: Iterable[Level]) -> Room | None:
    """The limit that is nearest to being reached, or none where there is none.

    Args:
        groups: `levels("memory")`, to be found once by whoever looks often.
    """
    found = []
    for level in groups:
        used = _used(level, "active_file", "inactive_file")
        if used is not None:
            found += [Room(limit, max(0, used)) for limit in _limits(level)]
    return min(found, key=lambda room: room.left, default=None)


def throttling(root: Path = ROOT) -> Throttling | None:
    """What the CPU quotas over this process have held back so far; none where the system does not count it."""
    seen = [_throttled(level.table("cpu.stat"), level.version) for level in levels("cpu", root)]
    counted = [one for one in seen if one is not None]
    if not counted:
        return None
    return Throttling(sum(one.periods for one in counted), sum(one.seconds for one in counted))


def _throttled(stat: dict[str, int], version: int) -> Throttling | None:
    if "nr_throttled" not in stat:
        return None
    seconds = stat.get("throttled_time", 0) / 1e9 if version == 1 else stat.get("throttled_usec", 0) / 1e6
    return Throttling(stat["nr_throttled"], seconds)
