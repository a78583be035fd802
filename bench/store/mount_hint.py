"""How a container of ours gets a folder of the host that it may write: whose it is, and how user ids are mapped."""

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
    """How to start a container so that it may write a folder that is mounted there.

    Args:
        folder: that it may not write.
        owner: its user and group, as they are seen there.
        me: the user that the container runs as.
        user_ids: the kernel's map of user ids, from there to the host; empty where the kernel has none.
    """
    user, group = owner
    if user == me:
        return f"Its owner is who the container runs as: where the host has SELinux, mount it as …:{folder}:z."
    if user_ids.split() not in ([], ["0", "0", str(2**32 - 1)]):
        return (
            "User ids of this container are not the host's, as with rootless podman: "
            "podman run --userns=keep-id --user $(id -u):$(id -g) … (with rootless docker --user 0:0)"
        )
    if user == 0:
        return (
            "root owns it, as where the engine had to make it. On the host, chown it to you, or remove it and `mkdir` "
            "it first; then run the container as you: docker run --user $(id -u):$(id -g) …"
        )
    return f"User {user} owns it; run the container as that user: docker run --user {user}:{group} …"
