"""Bodies of requests: JSON, and no larger than the hub will hold; a larger one is not read to its end.

Of large ones one is held at a time, from its first byte until it is stored, since a document takes many times as much
memory while it is read as it has bytes; then that goes back to the machine. Who comes meanwhile is asked to come again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from starlette.requests import ClientDisconnect, Request

from bench.hub.problems import Problem
from bench.hub.web import heap

LARGEST = 16 * 2**20
"""Bytes."""

LARGE = 2**20
"""Bytes above which a body counts as large: a result of ten trials has a tenth of that."""

SLOWEST = 120
"""Seconds in which a body has come, or its sender is asked to come again: it holds room meanwhile."""


class Room:
    """Whether a large body is held; asked by one thread only, that of the event loop."""

    def __init__(self) -> None:
        self.taken = False

    def take(self) -> None:
        """Takes it for a large body.

        Raises:
            Problem: another one is held.
        """
        if self.taken:
            said = f"another document of more than {LARGE // 2**20} MB is being stored"
            raise Problem(503, "busy", said, "Send it again.", {"Retry-After": "2"})
        self.taken = True


class Held:
    """What of one body is there so far, and whether that has taken room."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.large = False

    def grow(self, size: int) -> None:
        """Takes note that it has so many bytes.

        Raises:
            Problem: it is too large, or there is no room for it now.
        """
        if size > LARGEST:
            raise _too_large()
        if size > LARGE and not self.large:
            self.room.take()
            self.large = True


@asynccontextmanager
async def taken(request: Request, room: Room) -> AsyncIterator[bytes]:
    """The body of a request, for which there is room until the end.

    Raises:
        Problem: it is too large, cut off, says that it is something else than JSON, or there is no room for it now.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(415, "no-json", f"the body is {kind or 'of no kind'}", "Send it as application/json.")
    told = request.headers.get("content-length", "")
    held = Held(room)
    try:
        held.grow(int(told) if told.isdecimal() else 0)
        yield await _whole(request, held)
    finally:
        if held.large:
            room.taken = False
            heap.give_back()


async def _whole(request: Request, held: Held) -> bytes:
    parts, size = [], 0
    try:
        with anyio.fail_after(SLOWEST):
            async for part in request.stream():
                size += len(part)
                held.grow(size)  # its sender may not have told how long it is
                parts.append(part)
    except ClientDisconnect:
        raise Problem(400, "cut-off", "the sender went away before the body's end") from None
    except TimeoutError:
        said = f"the body did not come within {SLOWEST} s"
        raise Problem(503, "slow", said, "Send it again.", {"Connection": "close"}) from None
    return b"".join(parts)


def _too_large() -> Problem:
    return Problem(
        413,
        "too-large",
        f"the body has more than {LARGEST // 2**20} MB",
        "A result of so many samples can be read where it was measured.",
        {"Connection": "close"},
    )
