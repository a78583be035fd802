"""How much CPU and memory this process may use, and how often the CPU quota stopped it.

TensorFlow sizes its thread pools by the CPUs it sees and ignores a container's quota. On a 64-core node with a limit of
2 CPUs, it starts 64 threads. They use up the quota of a period within a few milliseconds and then all stop until the
next period. So devbench sets the number of threads by `thread_count`. Outside Linux there are no control groups, and
the functions return the machine's own figures.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.machine.cgroup import ControlGroup, control_groups
from bench.machine.system import ROOT

# Version 1 writes "no limit" as the largest multiple of the page size below 2**63. No real limit comes near this.
_UNLIMITED = 1 << 60


WHOLE_CPUS = "Give the container whole CPUs (--cpus=4; in Kubernetes requests = limits), and run nothing else in it."
"""The fix if a CPU quota stops threads."""


@dataclass(frozen=True)
class Throttling:
    """How often and how long the CPU quota stopped this process's control groups since they were made.

    Attributes:
        periods: number of periods (usually of 100 ms) in which the quota ran out.
        seconds: throttled time, summed over CPUs and over nested groups. It may exceed the wall time.
    """

    periods: int
    seconds: float


def affinity() -> int:
    """Return the number of CPUs that this process may run on; all CPUs if the system does not report it."""
    if sys.platform == "linux":
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def cpus_by_core(root: Path = ROOT) -> list[int]:
    """Return the CPUs that this process may run on, ordered so that those of one core are neighbours.

    The list is empty if the system does not report them.
    """
    if sys.platform != "linux":
        return []

    def core(cpu: int) -> tuple[int, ...]:
        folder = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
        try:
            return tuple(int((folder / name).read_text()) for name in ("physical_package_id", "core_id"))
        except (OSError, ValueError):
            return ()

    return sorted(os.sched_getaffinity(0), key=lambda cpu: (core(cpu), cpu))


def cpuset() -> str | None:
    """Return the CPUs that this process may run on, in Linux's notation, such as "0-3,8"; None if not reported."""
    if sys.platform == "linux":
        return ranges(os.sched_getaffinity(0))
    return None


def ranges(ids: Collection[int]) -> str:
    """Return numbers in Linux's notation: {0, 1, 2, 5} is "0-2,5"."""
    starts = sorted(n for n in ids if n - 1 not in ids)
    ends = sorted(n for n in ids if n + 1 not in ids)
    return ",".join(f"{a}-{b}" if b > a else str(a) for a, b in zip(starts, ends, strict=True))


def cpu_quota(root: Path = ROOT) -> float | None:
    """Return the tightest CPU quota of this process, in CPUs, such as 1.5; None if there is no quota."""
    return min(_quotas(control_groups("cpu", root)), default=None)


def _quotas(groups: list[ControlGroup]) -> Iterator[float]:
    for group in groups:
        if group.version == 1:
            quota, period = group.number("cpu.cfs_quota_us"), group.number("cpu.cfs_period_us")
        else:
            words = (group.text("cpu.max") or "max").split()
            quota = int(words[0]) if words[0].isdigit() else None
            period = int(words[1]) if len(words) > 1 and words[1].isdigit() else 100_000  # the kernel's default
        if quota and period and quota > 0:
            yield quota / period


def cpu_limit(root: Path = ROOT) -> float:
    """Return how many CPUs this process may use: the smaller of its affinity and its tightest quota.

    Args:
        root: folder to use as `/`.
    """
    quota = cpu_quota(root)
    return float(affinity()) if quota is None else min(float(affinity()), quota)


def thread_count(root: Path = ROOT) -> int:
    """Return the number of threads that can run all the time: the CPU limit rounded down, at least 1.

    Even 1.9 is rounded down. With one more thread than the quota covers, all threads stop at the end of each period,
    and parallel operations wait for their slowest part. That shows as noise, not as a slower step. To use the fraction,
    set the number of threads, or set a limit of whole CPUs.
    """
    return max(1, math.floor(cpu_limit(root)))


def memory_limit(root: Path = ROOT) -> int | None:
    """Return the tightest memory limit of this process, in bytes; None if there is no limit."""
    return min((limit for group in control_groups("memory", root) for limit in _limits(group)), default=None)


def _limits(group: ControlGroup) -> Iterator[int]:
    if group.version == 1:
        # The second includes the limits of parent groups, which a container does not see.
        limits = (group.number("memory.limit_in_bytes"), group.table("memory.stat").get("hierarchical_memory_limit"))
    else:
        limits = (group.number("memory.max"), None)
    for limit in limits:
        if limit is not None and limit < _UNLIMITED:
            yield limit


def memory_available(root: Path = ROOT) -> int:
    """Return how many bytes can still be allocated without swapping and without reaching a limit.

    This is the system's available memory or the rest of the tightest limit. Cached files that the kernel would drop
    count as free, as they do in the system's figure and in Kubernetes' working set.
    """
    import psutil

    rest = [int(psutil.virtual_memory().available)]
    for group in control_groups("memory", root):
        used = _used_bytes(group, "inactive_file")
        if used is not None:
            rest += [max(0, limit - used) for limit in _limits(group)]
    return min(rest)


def _used_bytes(group: ControlGroup, *droppable: str) -> int | None:
    """Return the bytes that a group holds without these kinds of memory (version 2's names); None if not reported."""
    used = group.number("memory.usage_in_bytes" if group.version == 1 else "memory.current")
    if used is None:
        return None
    stat, prefix = group.table("memory.stat"), "total_" if group.version == 1 else ""
    return used - sum(stat.get(prefix + kind, 0) for kind in droppable)


@dataclass(frozen=True)
class Room:
    """How much of a memory limit is in use.

    Attributes:
        limit: the limit, in bytes.
        used: bytes in use that the kernel cannot free by dropping cached files.
    """

    limit: int
    used: int

    @property
    def left(self) -> int:
        """Bytes that can still be used before the kernel kills processes."""
        return self.limit - self.used


def memory_room(groups: Iterable[ControlGroup]) -> Room | None:
    """Return the memory limit with the fewest bytes left; None if there is no limit.

    Args:
        groups: the result of `control_groups("memory")`. A caller that asks often can keep it.
    """
    rooms = []
    for group in groups:
        used = _used_bytes(group, "active_file", "inactive_file")
        if used is not None:
            rooms += [Room(limit, max(0, used)) for limit in _limits(group)]
    return min(rooms, key=lambda room: room.left, default=None)


def throttling(root: Path = ROOT) -> Throttling | None:
    """Return how much the CPU quotas have throttled this process so far; None if the system does not count it."""
    groups = [_throttling(group.table("cpu.stat"), group.version) for group in control_groups("cpu", root)]
    counts = [count for count in groups if count is not None]
    if not counts:
        return None
    return Throttling(sum(count.periods for count in counts), sum(count.seconds for count in counts))


def _throttling(stat: dict[str, int], version: int) -> Throttling | None:
    if "nr_throttled" not in stat:
        return None
    seconds = stat.get("throttled_time", 0) / 1e9 if version == 1 else stat.get("throttled_usec", 0) / 1e6
    return Throttling(stat["nr_throttled"], seconds)
