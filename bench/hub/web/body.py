"""Request bodies: JSON of limited size. The hub stops reading a larger body.

The hub holds one large body at a time, from its first byte until it is stored: parsing a document takes many times as
much memory as the document has bytes. Afterwards that memory returns to the system. Other senders of large bodies are
asked to retry. All other bodies together may take `HELD_BYTES`.
"""

from __future__ import annotations

import time
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

HELD_BYTES = 64 * 2**20
"""Maximum size of all bodies that are not large, from their first bytes until they are stored."""

TIMEOUT = 120.0
"""Seconds in which a body must arrive, because it occupies the slot of the large body."""

PATIENCE = 10.0
SLOWEST = 20_000.0
"""Seconds that a body may take in addition to its size at this rate, in bytes per second. devbench sends at a higher
rate, or gives up."""


class BodyLimits:
    """What the hub holds of bodies. Only the thread of the event loop uses it.

    Attributes:
        large: whether the hub holds a large body.
        held: size of all other bodies, as far as they have arrived, in bytes.
    """

    def __init__(self) -> None:
        self.large = False
        self.held = 0


class _BodySize:
    """The size of a body that is being read. A large body occupies the slot.

    Args:
        limits: what the hub holds of all bodies.
    """

    def __init__(self, limits: BodyLimits) -> None:
        self._limits = limits
        self._large = False
        self._held = 0

    def announce(self, size: int) -> None:
        """Note that the body will have this many bytes.

        Raises:
            Problem: the body is too large, or it is large and the hub holds another large one.
        """
        if size > MAXIMUM:
            raise _too_large()
        if size > LARGE_BODY_BYTES and not self._large:
            if self._limits.large:
                raise _busy(f"the hub is storing another document of more than {LARGE_BODY_BYTES // 2**20} MB")
            self._limits.large = self._large = True
            self._hold(0)

    def grow(self, size: int) -> None:
        """Note that this many bytes of the body have arrived. The sender may not have announced them.

        Raises:
            Problem: as for `announce`, or there is no room for the body.
        """
        self.announce(size)
        if not self._large:
            if self._limits.held - self._held + size > HELD_BYTES:
                raise _busy("the hub is receiving too many documents")
            self._hold(size)

    def release(self) -> None:
        """Forget the body. Free the slot of a large one, and return its memory to the system."""
        self._hold(0)
        if self._large:
            self._limits.large = False
            heap.trim()

    def _hold(self, size: int) -> None:
        self._limits.held += size - self._held
        self._held = size


@asynccontextmanager
async def received(request: Request, limits: BodyLimits) -> AsyncIterator[bytes]:
    """Yield the body of a request, which counts until the end.

    Raises:
        Problem: the body is not JSON, is too large, incomplete or too slow, or there is no room for it.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        detail = f"the content type is {media_type}" if media_type else "the request has no content type"
        raise Problem(415, "not-json", detail, "Send the document as application/json.")
    length = request.headers.get("content-length", "")
    size = _BodySize(limits)
    try:
        size.announce(int(length) if length.isdecimal() else 0)
        yield await _read(request, size)
    finally:
        size.release()


async def _read(request: Request, size: _BodySize) -> bytes:
    parts: list[bytes] = []
    length = 0
    stream = request.stream()
    start = time.monotonic()
    try:
        while True:
            limit = start + min(TIMEOUT, PATIENCE + length / SLOWEST)
            with anyio.fail_after(limit - time.monotonic()):
                part = await anext(stream, None)
            if part is None:
                return b"".join(parts)
            length += len(part)
            size.grow(length)
            parts.append(part)
    except ClientDisconnect:
        raise Problem(400, "incomplete-body", "the sender disconnected before the end of the body") from None
    except TimeoutError:
        detail = f"the body did not arrive in time: {length} bytes in {time.monotonic() - start:.0f} s"
        raise Problem(503, "slow-body", detail, "Send it again.", {"Connection": "close"}) from None


def _busy(detail: str) -> Problem:
    return Problem(503, "busy", detail, "Send it again.", {"Retry-After": "2"})


def _too_large() -> Problem:
    return Problem(
        413,
        "too-large",
        f"the document has more than {MAXIMUM // 2**20} MB",
        "Keep such a result on the machine that measured it: `devbench report` reads it there.",
        {"Connection": "close"},
    )
