"""The Linux control groups that this process belongs to: version 1, version 2, or both at once.

A container has its limits on its own group, a pod on the group above, a systemd slice on one above that. All of them
apply, so this module returns every group from the process's own up to the top of the mount.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.machine.system import ROOT, read


@dataclass(frozen=True)
class ControlGroup:
    """One group that this process belongs to.

    Attributes:
        version: 1 or 2, which decides the names of its files.
        folder: the folder that holds its files.
    """

    version: Literal[1, 2]
    folder: Path

    def text(self, name: str) -> str | None:
        """Return the text of one of its files, or None."""
        return read(self.folder / name)

    def number(self, name: str) -> int | None:
        """Return the number in one of its files; None if the file is absent or says "max"."""
        text = self.text(name)
        try:
            return int(text) if text else None
        except ValueError:
            return None

    def table(self, name: str) -> dict[str, int]:
        """Return the `key number` lines of one of its files."""
        rows = (line.split() for line in (self.text(name) or "").splitlines())
        return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


@dataclass(frozen=True)
class _Mount:
    version: Literal[1, 2]
    controllers: frozenset[str]
    top: str
    point: str


def _mounts(root: Path) -> Iterator[_Mount]:
    """Yield all mounted cgroup file systems (proc_pid_mountinfo(5))."""
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
    """Decode a mount path, in which blanks and similar characters are three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)


def _membership(root: Path) -> Iterator[tuple[frozenset[str], str]]:
    """Yield controllers and path of each group of this process; version 2 lists no controllers (cgroups(7))."""
    for line in (read(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        yield frozenset(filter(None, controllers.split(","))), path


def control_groups(controller: str, root: Path = ROOT) -> list[ControlGroup]:
    """Return the groups of a controller that this process belongs to, of both versions, its own first.

    Args:
        controller: such as "cpu" or "memory".
        root: folder to use as `/`.
    """
    groups: dict[Path, ControlGroup] = {}
    memberships = list(_membership(root))
    for mount in _mounts(root):
        for controllers, path in memberships:
            if controller in controllers & mount.controllers or (mount.version == 2 and not controllers):
                point = root / mount.point.lstrip("/")
                folder = point / _below(mount.top, path)
                for parent in [folder, *folder.parents]:
                    if parent.is_dir():
                        groups.setdefault(parent, ControlGroup(mount.version, parent))
                    if parent == point:
                        break
    return list(groups.values())


def _below(top: str, path: str) -> str:
    """Return a group's path relative to a mount that shows the tree from `top` on.

    In a container the two may not match: without a cgroup namespace the path is the host's, and a mount that was made
    outside the namespace has a top that starts with "/..". The group is then the mount's own top.
    """
    if top == "/":
        inside = path
    elif path == top or path.startswith(f"{top}/"):
        inside = path[len(top) :]
    else:
        inside = ""
    return "" if "/.." in inside else inside.lstrip("/")


def version(root: Path = ROOT) -> str | None:
    """Return the mounted versions: "v1", "v2" or "v1+v2"; None if there are no control groups."""
    versions = sorted({mount.version for mount in _mounts(root)})
    return "+".join(f"v{number}" for number in versions) or None
