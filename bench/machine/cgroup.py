"""Where this process stands in the control groups, version 1, version 2, or both at once.

A container's limits are set on its own group, a pod's on the group above, a systemd slice's above that: each
holds. So all levels are given, from the process's own group up to the top of what is mounted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.machine.system import ROOT, read


@dataclass(frozen=True)
class Level:
    """One group that this process is in.

    Attributes:
        version: 1 or 2, which decides the names of its files.
        folder: where its files are.
    """

    version: Literal[1, 2]
    folder: Path

    def text(self, name: str) -> str | None:
        """The text of one of its files, or none."""
        return read(self.folder / name)

    def number(self, name: str) -> int | None:
        """The number in one of its files, or none where it is absent or reads "max"."""
        text = self.text(name)
        try:
            return int(text) if text else None
        except ValueError:
            return None

    def table(self, name: str) -> dict[str, int]:
        """The `key number` lines of one of its files."""
        rows = (line.split() for line in (self.text(name) or "").splitlines())
        return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


@dataclass(frozen=True)
class _Mount:
    version: Literal[1, 2]
    controllers: frozenset[str]
    top: str
    point: str


def _mounts(root: Path) -> Iterator[_Mount]:
    """Every cgroup file system (proc_pid_mountinfo(5))."""
    for line in (read(root / "proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) < 5 or len(kind) < 3 or kind[0] not in ("cgroup", "cgroup2"):
            continue
        top, point = (_unescape(field) for field in fields[3:5])
        if kind[0] == "cgroup2":
            yield _Mount(2, frozenset(), top, point)
        else:
            yield _Mount(1, frozenset(kind[2].split(",")), top, point)


def _unescape(field: str) -> str:
    """Mount paths have blanks and the like as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)


def _membership(root: Path) -> Iterator[tuple[frozenset[str], str]]:
    """Controllers and path of each group of this process; version 2 has no controllers there (cgroups(7))."""
    for line in (read(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        yield frozenset(filter(None, controllers.split(","))), path


def levels(controller: str, root: Path = ROOT) -> list[Level]:
    """The groups of a controller that this process is in, its own first, in both versions.

    Args:
        controller: such as "cpu" or "memory".
        root: the folder that stands for `/`.
    """
    found: dict[Path, Level] = {}
    groups = list(_membership(root))
    for mount in _mounts(root):
        for controllers, path in groups:
            if controller in controllers & mount.controllers or (mount.version == 2 and not controllers):
                point = root / mount.point.lstrip("/")
                folder = point / _below(mount.top, path)
                for level in [folder, *folder.parents]:
                    if level.is_dir():
                        found.setdefault(level, Level(mount.version, level))
                    if level == point:
                        break
    return list(found.values())


def _below(top: str, path: str) -> str:
    """Where a group's path lies under a mount that shows the tree from `top` on.

    In a container the two may not fit: without a cgroup namespace the path is the host's, and a mount made
    outside the namespace has a top that begins with "/..". The mount's own top is then the group.
    """
    if top == "/":
        inside = path
    elif path == top or path.startswith(f"{top}/"):
        inside = path[len(top) :]
    else:
        inside = ""
    return "" if "/.." in inside else inside.lstrip("/")


def version(root: Path = ROOT) -> str | None:
    """What is mounted: "v1", "v2" or "v1+v2"; none where there are no control groups."""
    seen = sorted({mount.version for mount in _mounts(root)})
    return "+".join(f"v{number}" for number in seen) or None
