"""Ends a worker before the container's memory limit does.

At the limit the kernel kills processes. With cgroup v2 it kills a whole Kubernetes container (`memory.oom.group`),
including the parent, which then cannot report why. So the parent checks the memory from outside. The nearer the limit
is, the more often it checks. Without a limit it checks once.
"""

from __future__ import annotations

from pathlib import Path

from bench.machine.cgroup import control_groups
from bench.machine.limits import Room, memory_room
from bench.machine.system import ROOT
from bench.model.failure import Failure
from bench.model.phase import Activity

RESERVE_SHARE, RESERVE = 0.04, 64 * 2**20
"""What must stay free: this share of the limit, and at least this many bytes."""

FASTEST = 4 * 2**30
"""Maximum bytes per second that a program can add. The kernel must map and fill each page."""

SOONEST, LATEST = 0.01, 0.5
"""Bounds for the seconds between two checks."""

GIB = 2**30


class MemoryGuard:
    """Checks the memory limits of this process.

    Args:
        root: The folder that stands for `/`.
    """

    def __init__(self, root: Path = ROOT) -> None:
        self._groups = control_groups("memory", root)
        if memory_room(self._groups) is None:
            self._groups = []

    def check(self) -> tuple[Room | None, float]:
        """Return the limit that is about to be reached, or None; and the seconds until the next check is due."""
        room = memory_room(self._groups) if self._groups else None
        if room is None:
            return None, LATEST
        spare = room.left - max(RESERVE, RESERVE_SHARE * room.limit)
        return (room if spare <= 0 else None), min(LATEST, max(SOONEST, spare / FASTEST))


def out_of_memory(room: Room, worker_bytes: int, phase: Activity, last_lines: list[str]) -> Failure:
    """Return the failure of a worker that was ended before it reached the limit.

    Args:
        room: The limit.
        worker_bytes: Memory of the worker.
        phase: What it was doing.
        last_lines: The end of its stderr.
    """
    usage = f"{room.used / GIB:.2f} of {room.limit / GIB:.2f} GiB in use, {worker_bytes / GIB:.2f} GiB by this worker"
    return Failure(
        kind="memory",
        message=f"the worker was ended just before it reached the memory limit: {usage}",
        hint="Use a smaller batch or less data, or raise the limit: docker run --memory 4g …, or in Kubernetes "
        "resources.limits.memory.",
        phase=phase,
        last_lines=last_lines,
    )
