"""Answers in parts. asyncio would buffer an answer as a whole if the client reads slowly."""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bench.hub.problems import MEDIA_TYPE, Problem
from bench.hub.web.middleware import HEADERS

PART_BYTES = 32 * 1024
"""Maximum size of a part of an answer. A part is sent when the client has taken most of the parts before it."""


def in_parts(app: ASGIApp, hold: Callable[[int], bool], end: Callable[[], None]) -> ASGIApp:
    """Return an application that sends the answers of another one in parts.

    Args:
        app: the other application.
        hold: called with the bytes of an answer that wait in memory from now on, 0 if none do. It returns whether there
            is room for them, which there is not after the connection has ended. If not, the client gets status 503.
        end: ends the connection. It is called if there is no room for an answer that has already begun.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        announced = 0
        refused = False

        async def send_parts(message: Message) -> None:
            nonlocal announced, refused
            if refused:
                return
            body: bytes = message.get("body", b"")
            starts = message["type"] == "http.response.start"
            if starts:
                announced = int(Headers(raw=message.get("headers", [])).get("content-length", "0"))
            waiting = max(announced, len(body))
            if starts and not hold(waiting):
                refused = True
                await _busy()(scope, receive, send)
                return
            first = 0
            while first + PART_BYTES < len(body) and hold(waiting):
                await send({**message, "body": body[first : first + PART_BYTES], "more_body": True})
                first += PART_BYTES
            if not hold(waiting):
                refused = True
                end()
                return
            await send({**message, "body": body[first:]} if first else message)
            hold(announced)

        if scope["method"] == "HEAD":  # the server leaves the body out
            await app(scope, receive, send)
            return
        try:
            await app(scope, receive, send_parts)
        finally:
            hold(0)

    return answer


def _busy() -> JSONResponse:
    detail = "the hub is sending other large answers to clients that read slowly"
    problem = Problem(503, "busy", detail, "Try again.", {"Retry-After": "5"})
    return JSONResponse(problem.document(), problem.status, {**HEADERS, **problem.headers}, MEDIA_TYPE)
