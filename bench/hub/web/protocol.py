"""What a connection may take before a request is authenticated: memory, time and a place among the connections.

h11 parses HTTP in Python. It reads a request only after the one before it has been answered, and a head only up to a
size. uvicorn's other parser, httptools, has neither limit.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from bench.hub.web.parts import PART_BYTES, in_parts

HEAD_BYTES = 16 * 1024
"""Maximum size of a request's head. It also limits the number of headers."""

HEAD_SECONDS = 10.0
"""Seconds in which a head must arrive, from the start of the connection or from the end of the answer before it."""

WRITE_SECONDS = 60.0
"""Seconds in which a client must take something of an answer."""

STALLED_SECONDS = 1.0
"""Seconds without progress after which a request or an answer gives way to new connections, and an answer to others."""

SYSTEM_BYTES = 64 * 1024
"""Size of the system's send buffer of a connection; Linux doubles it. asyncio buffers as much, and one part. Linux asks
for more when a third of its buffer is free. So a client must take about 40 kB within `WRITE_SECONDS`."""

HELD_BYTES = 64 * 2**20
"""Maximum size of all answers that wait for their clients. Answers of one part do not count. An answer that is larger
is sent if no other waits."""

CONNECTIONS = 700
"""Maximum number of connections. A new one replaces the one whose client has been idle for longest."""

FILES = 4096
"""Open files that the hub asks the system for: connections, and the database's files."""


class Protocol(H11Protocol):
    """uvicorn's protocol for one connection, with the limits above."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.app = in_parts(self.app, self._hold, self.end)
        self._held = 0  # size of the answer that is being sent
        self._unsent = 0  # size of asyncio's buffer at the last look
        self._idle_since = self.loop.time()  # when the hub last waited anew for the client
        self._received_at = self._idle_since  # when the client last sent something
        self._timer: asyncio.TimerHandle | None = None

    @property
    def _request(self) -> RequestResponseCycle | None:
        """The latest request. None before the first one."""
        return cast("RequestResponseCycle | None", self.cycle)

    @property
    def waits_for_request(self) -> bool:
        """Whether no request is being answered."""
        return self._request is None or self._request.response_complete

    @property
    def _awaits_body(self) -> bool:
        """Whether the client has not sent the whole request yet, although the hub would read it."""
        request = self._request
        return request is not None and not request.response_complete and request.more_body and not self.flow.read_paused

    def _client_idle_since(self) -> float | None:
        """Return since when the client has sent nothing and taken nothing of an answer, by the loop's clock.

        None if the hub works on a request, or if the client has just sent a part of it or taken a part of the answer.
        """
        self._note_progress()
        if self._awaits_body and self.loop.time() - self._received_at >= STALLED_SECONDS:
            return self._received_at
        stalled = self.flow.write_paused and self.loop.time() - self._idle_since >= STALLED_SECONDS
        return self._idle_since if self.waits_for_request or stalled else None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection. If there are too many, close the one whose client has been idle for longest."""
        super().connection_made(transport)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SYSTEM_BYTES)
        if len(self.connections) > CONNECTIONS:
            self._idle_connections()[0].end()  # this one if no other is idle
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        self._received_at = self.loop.time()
        super().data_received(data)
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP. If an answer has begun, only end the connection."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.end()

    def on_response_complete(self) -> None:
        """Wait for the next request, or answer it if it has arrived."""
        self._idle_since = self.loop.time()
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait until the client has taken a part of the answer, for a limited time."""
        super().pause_writing()
        self._idle_since = self.loop.time()  # the client took what was sent before
        self._watch()

    def resume_writing(self) -> None:
        """Continue to write."""
        super().resume_writing()
        self._watch()

    def end(self) -> None:
        """End the connection, with whatever has not been sent."""
        self._held = 0
        self._stop_timer()
        self.connections.discard(self)
        self.transport.abort()

    def _idle_connections(self) -> list[Protocol]:
        """Return the connections whose clients are idle, the longest idle first."""
        idle = []
        for connection in self.connections:
            if isinstance(connection, Protocol) and (since := connection._client_idle_since()) is not None:
                idle.append((since, id(connection), connection))
        return [connection for _, _, connection in sorted(idle)]

    def _hold(self, size: int) -> bool:
        """Note the size of the answer that waits in memory, and return whether there is room for it.

        If there is little room, the answers of clients that take nothing make way. A connection that has ended has no
        room.
        """
        if self not in self.connections:
            return False
        if size <= max(self._held, PART_BYTES):
            self._held = size if size > PART_BYTES else 0
            return True
        others = sum(other._held for other in self.connections if isinstance(other, Protocol) and other is not self)
        if others + size > HELD_BYTES:
            for other in self._idle_connections():
                if other._held and others and others + size > HELD_BYTES:
                    others -= other._held
                    other.end()
        if others and others + size > HELD_BYTES:
            return False
        self._held = size
        return True

    def _note_progress(self) -> None:
        """Note whether the client has taken a part of the answer since the last look."""
        size = self.transport.get_write_buffer_size()
        if size < self._unsent:
            self._idle_since = self.loop.time()
        self._unsent = size

    def _limit(self) -> float | None:
        """Return when to end the connection unless the client does something, by the loop's clock."""
        if self.waits_for_request and not self._unsent:
            return self._idle_since + HEAD_SECONDS
        return self._idle_since + WRITE_SECONDS if self.waits_for_request or self.flow.write_paused else None

    def _watch(self) -> None:
        """Limit the time until the client has taken a part of the answer, and until its next request has arrived."""
        self._stop_timer()
        self._note_progress()
        if (limit := self._limit()) is not None:
            self._timer = self.loop.call_at(limit, self._check)

    def _check(self) -> None:
        """End the connection if its client has done nothing for too long."""
        self._watch()
        if (limit := self._limit()) is not None and limit <= self.loop.time():
            self.end()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def allow_files() -> None:
    """Raise the limit of open files, as far as the system allows."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
