"""What a connection may take before a request is authenticated: memory, time and a place among the connections.

h11 parses HTTP in Python. It reads a request only after the one before it has been answered, and a head only up to a
size. uvicorn's other parser, httptools, has neither limit.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEAD_BYTES = 16 * 1024
"""Maximum size of a request's head. It also limits the number of headers."""

HEAD_SECONDS = 10.0
"""Seconds in which a head must arrive, from the start of the connection or from the answer before it."""

WRITE_SECONDS = 60.0
"""Seconds in which a client must take the part of an answer that is in memory, at most 64 kB."""

CONNECTIONS = 500
"""Maximum number of connections. A new one replaces the one that has waited longest for a request."""

FILES = 4096
"""Open files that the hub asks the system for: connections, and the database's files."""


class Protocol(H11Protocol):
    """uvicorn's protocol for one connection, with the limits above."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._idle_since = self.loop.time()
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    @property
    def waits_for_request(self) -> bool:
        """Whether no request is being answered."""
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request
        return cycle is None or cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection. If there are too many, close the one that has waited longest."""
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            waiting = [other for other in self.connections if isinstance(other, Protocol) and other.waits_for_request]
            min(waiting, key=lambda other: other._idle_since).end()
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request, or answer it if it has arrived."""
        self._idle_since = self.loop.time()
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_head_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait until the client has taken a part of the answer, for a limited time."""
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(WRITE_SECONDS, self.end)

    def resume_writing(self) -> None:
        """Continue to write."""
        super().resume_writing()
        self._stop_write_timer()

    def end(self) -> None:
        """End the connection, with whatever has not been sent."""
        self.connections.discard(self)
        self.transport.abort()

    def _watch(self) -> None:
        """Limit the time until the next request has arrived and the client has taken the last answer."""
        if not self.waits_for_request:
            self._stop_head_timer()
        elif self._head_timer is None:
            seconds = WRITE_SECONDS if self.transport.get_write_buffer_size() else HEAD_SECONDS
            self._head_timer = self.loop.call_later(seconds, self.end)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


def allow_files() -> None:
    """Raise the limit of open files, as far as the system allows."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
