"""The Linux control groups that this process belongs to: version 1, version 2, or both at once.

Groups are nested: that of a container is in that of its pod, which is in that of a systemd slice. Each may have limits,
and all of them apply. This module therefore returns every group, from that of the process up to the top of the mount.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.machine.system import ROOT, Mount, mounts, read

VERSIONS: Mapping[str, Literal[1, 2]] = {"cgroup": 1, "cgroup2": 2}
"""Version of the control groups by the kind of their file system."""


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
    for mount in mounts(root):
        for controllers, path in memberships:
            if _holds(mount, controller, controllers):
                point = root / mount.point.lstrip("/")
                folder = point / _relative_path(mount.top, path)
                for parent in [folder, *folder.parents]:
                    if parent.is_dir():
                        groups.setdefault(parent, ControlGroup(VERSIONS[mount.kind], parent))
                    if parent == point:
                        break
    return list(groups.values())


def _holds(mount: Mount, controller: str, controllers: frozenset[str]) -> bool:
    """Return whether a mount holds the files of `controller` for a membership that has these controllers."""
    if mount.kind == "cgroup":
        return controller in controllers & set(mount.options)
    return mount.kind == "cgroup2" and not controllers


def _relative_path(top: str, path: str) -> str:
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
    versions = sorted({VERSIONS[mount.kind] for mount in mounts(root) if mount.kind in VERSIONS})
    return "+".join(f"v{number}" for number in versions) or None
