"""Ending a worker before the container's memory limit does.

At the limit the kernel ends processes: with control groups of version 2 all of a Kubernetes container's together
(`memory.oom.group`), the parent among them, and nobody is left to say why. So the parent looks, from outside, and
more often the nearer the limit is; where there is no limit it does not look again.
"""

from __future__ import annotations

from pathlib import Path

from bench.machine.cgroup import levels
from bench.machine.limits import Room, memory_room
from bench.machine.system import ROOT
from bench.model.result import Failure

RESERVE_SHARE, RESERVE = 0.04, 64 * 2**20
"""What is to stay free: this share of the limit, and at least so many bytes."""

FASTEST = 4 * 2**30
"""Bytes a second that a program can come to hold, at most: each page has to be given to it and filled."""

SOONEST, LATEST = 0.01, 0.5
"""Seconds between two looks."""

GIB = 2**30


class MemoryWatch:
    """Looks at the memory limits over this process.

    Args:
        root: the folder that stands for `/`.
    """

    def __init__(self, root: Path = ROOT) -> None:
        self._groups = levels("memory", root)
        if memory_room(self._groups) is None:
            self._groups = []

    def look(self) -> tuple[Room | None, float]:
        """The limit that is about to be reached, or none; and the seconds until the next look is due."""
        room = memory_room(self._groups) if self._groups else None
        if room is None:
            return None, LATEST
        spare = room.left - max(RESERVE, RESERVE_SHARE * room.limit)
        return (room if spare <= 0 else None), min(LATEST, max(SOONEST, spare / FASTEST))


def full(room: Room, held: int, phase: str, last_lines: list[str]) -> Failure:
    """Why a worker was ended.

    Args:
        room: the limit.
        held: bytes that the worker held.
        phase: what it was doing.
        last_lines: the end of what it wrote to stderr.
    """
    in_use = f"{room.used / GIB:.2f} of {room.limit / GIB:.2f} GiB in use, {held / GIB:.2f} GiB of it by this worker"
    return Failure(
        kind="memory",
        message=f"the worker was ended because the memory limit was about to be reached: {in_use}",
        hint="Try a smaller batch or less data, or raise the limit: docker run --memory 4g …, or in Kubernetes "
        "resources.limits.memory.",
        phase=phase,
        last_lines=last_lines,
    )
