"""The hint for a mounted folder that a container may not write: who owns it, and how user ids are mapped."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bench.machine import system

USER_IDS = Path("/proc/self/uid_map")


def hint(folder: Path) -> str:
    """What to do about a folder that may not be written; nothing where none is mounted into an image of ours."""
    # What is not mounted there is the image's own, and stays so.
    if sys.platform == "win32" or not system.image() or not system.is_mounted(folder):
        return ""
    there = next(each for each in (folder, *folder.absolute().parents) if os.access(each, os.F_OK)).stat()
    return how(folder, (there.st_uid, there.st_gid), os.geteuid(), system.read(USER_IDS) or "")


def how(folder: Path, owner: tuple[int, int], me: int, user_ids: str) -> str:
    """Return how to start a container so that it may write a mounted folder.

    Args:
        folder: The folder.
        owner: Its user and group, as the container sees them.
        me: The user that the container runs as.
        user_ids: The kernel's map of user ids from the container to the host. Empty if the kernel has none.
    """
    user, group = owner
    if user == me:
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
