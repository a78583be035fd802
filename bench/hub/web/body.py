"""Request bodies: JSON of limited size. The hub stops reading a larger body.

The hub holds one large body at a time, from its first byte until it is stored: parsing a document takes many times as
much memory as the document has bytes. Afterwards that memory returns to the system. Other senders of large bodies are
asked to retry.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from starlette.requests import ClientDisconnect, Request

from bench.hub.problems import Problem
from bench.hub.web import heap

MAXIMUM = 16 * 2**20
"""Maximum size of a body, in bytes."""

LARGE_BODY_BYTES = 2**20
"""Size from which a body is large, in bytes. A result of ten trials has a tenth of that."""

TIMEOUT = 120
"""Seconds in which a body must arrive, because it occupies the slot of the large body."""


class LargeBodySlot:
    """Whether the hub holds a large body. Only the thread of the event loop uses it."""

    def __init__(self) -> None:
        self.occupied = False


class _BodySize:
    """The size of a body that is being read. A large body occupies the slot.

    Args:
        slot: the slot for the large body.
    """

    def __init__(self, slot: LargeBodySlot) -> None:
        self.slot = slot
        self.large = False

    def grow(self, size: int) -> None:
        """Note that the body has at least this many bytes.

        Raises:
            Problem: the body is too large, or it is large and the hub holds another large one.
        """
        if size > MAXIMUM:
            raise _too_large()
        if size > LARGE_BODY_BYTES and not self.large:
            if self.slot.occupied:
                detail = f"the hub is storing another document of more than {LARGE_BODY_BYTES // 2**20} MB"
                raise Problem(503, "busy", detail, "Send it again.", {"Retry-After": "2"})
            self.slot.occupied = self.large = True

    def release(self) -> None:
        """Free the slot, and return the memory of a large body to the system."""
        if self.large:
            self.slot.occupied = False
            heap.trim()


@asynccontextmanager
async def received(request: Request, slot: LargeBodySlot) -> AsyncIterator[bytes]:
    """Yield the body of a request, which occupies the slot until the end if it is large.

    Raises:
        Problem: the body is not JSON, is too large, incomplete or too slow, or the slot is occupied.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        detail = f"the content type is {media_type}" if media_type else "the request has no content type"
        raise Problem(415, "not-json", detail, "Send the document as application/json.")
    length = request.headers.get("content-length", "")
    size = _BodySize(slot)
    try:
        size.grow(int(length) if length.isdecimal() else 0)
        yield await _read(request, size)
    finally:
        size.release()


async def _read(request: Request, size: _BodySize) -> bytes:
    parts, length = [], 0
    try:
        with anyio.fail_after(TIMEOUT):
            async for part in request.stream():
                length += len(part)
                size.grow(length)  # the sender may not have announced the length
                parts.append(part)
    except ClientDisconnect:
        raise Problem(400, "incomplete-body", "the sender disconnected before the end of the body") from None
    except TimeoutError:
        detail = f"the body did not arrive within {TIMEOUT} s"
        raise Problem(503, "slow-body", detail, "Send it again.", {"Connection": "close"}) from None
    return b"".join(parts)


def _too_large() -> Problem:
    return Problem(
        413,
        "too-large",
        f"the document has more than {MAXIMUM // 2**20} MB",
        "Keep such a result on the machine that measured it: `devbench report` reads it there.",
        {"Connection": "close"},
    )
