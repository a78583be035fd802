"""Bodies of requests: JSON, and no larger than the hub will hold; a larger one is not read to its end."""

from __future__ import annotations

from starlette.requests import ClientDisconnect, Request

from bench.hub.problems import Problem

LARGEST = 16 * 2**20
"""Bytes."""


async def read(request: Request) -> bytes:
    """The body of a request.

    Raises:
        Problem: it is too large, cut off, or says that it is something else than JSON.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(415, "no-json", f"the body is {kind or 'of no kind'}", "Send it as application/json.")
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told) > LARGEST:
        raise _too_large()
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > LARGEST:
                raise _too_large()
            parts.append(part)
    except ClientDisconnect:
        raise Problem(400, "cut-off", "the sender went away before the body's end") from None
    return b"".join(parts)


def _too_large() -> Problem:
    return Problem(
        413,
        "too-large",
        f"the body has more than {LARGEST // 2**20} MB",
        "A result of so many samples can be read where it was measured.",
        {"Connection": "close"},
    )
