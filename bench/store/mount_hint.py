"""The hint for a mounted folder that a container may not write: who owns it, and how user ids are mapped."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bench.machine import system

USER_IDS = Path("/proc/self/uid_map")


def hint(folder: Path) -> str:
    """Return what to do about a folder that cannot be written. Empty if it is not mounted into a devbench container."""
    if sys.platform == "win32" or not system.image() or not system.is_mounted(folder):
        return ""
    existing = next(path for path in (folder, *folder.absolute().parents) if os.access(path, os.F_OK)).stat()
    return advice(folder, (existing.st_uid, existing.st_gid), os.geteuid(), system.read(USER_IDS) or "")


def advice(folder: Path, owner: tuple[int, int], user_id: int, user_ids: str) -> str:
    """Return how to start a container so that it may write a mounted folder.

    Args:
        folder: The folder.
        owner: Its user and group, as the container sees them.
        user_id: The user that the container runs as.
        user_ids: The kernel's map of user ids from the container to the host. Empty if the kernel has none.
    """
    user, group = owner
    if user == user_id:
        return f"The container runs as its owner. If the host has SELinux, mount it as …:{folder}:z."
    if user_ids.split() not in ([], ["0", "0", str(2**32 - 1)]):
        return (
            "User ids of this container differ from the host's, as with rootless podman. Use "
            "podman run --userns=keep-id --user $(id -u):$(id -g) … (rootless docker: --user 0:0)."
        )
    if user == 0:
        return (
            "root owns it, probably because the container engine made it. On the host, chown it to yourself, or "
            "remove it and make it with `mkdir`. Then run docker run --user $(id -u):$(id -g) …"
        )
    return f"User {user} owns it. Run the container as that user: docker run --user {user}:{group} …"
