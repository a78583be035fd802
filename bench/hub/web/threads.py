"""The threads that serve requests. Each kind of request has its own, so slow pages do not delay writes and probes.

Python runs one thread at a time, so few threads that read also leave more time to the others.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any, Literal, TypeVar

import anyio
from anyio import CapacityLimiter, to_thread

from bench.hub.problems import Problem

ThreadKind = Literal["write", "read", "chart", "metrics", "probe"]

THREADS: dict[ThreadKind, int] = {"write": 12, "read": 3, "chart": 3, "metrics": 1, "probe": 1}
"""Maximum number of threads of each kind. Pages with charts wait for the drawing process, so other pages must not wait
for them. Threads that write wait together for one commit. More threads would not be faster, but some writes would take
much longer than others."""

BESIDE_WRITES: dict[ThreadKind, int] = {"read": 1, "chart": 1}
"""Maximum number of threads of some kinds while documents are written. Python runs one thread at a time, and a sender
holds up a measurement while it waits. A reader waits for a page."""

CROWD = THREADS["write"]
"""If more documents than these arrive at once, pages wait until the hub has written them."""

PAGE_PATIENCE = 5.0
"""Seconds that a page waits for them at most. With 2 s, pages took so much time that 1% of the writes took longer than
1.2 s."""

PAUSES: dict[ThreadKind, float] = {"chart": 1.0}
"""How long no further page of a kind is made after one, while many documents arrive, as a multiple of the time that it
took. Charts take so much time that pages made without pauses lower the rate of writes and raise their longest times.
Lists are quick. With pauses, 200 readers would wait for almost `WAIT`."""

LONGEST_PAUSE = 0.5
"""How long such a pause is at most, in seconds. Pages go on, however long each takes."""

ARRIVAL_SECONDS = 2.0
"""Seconds for which a document that arrives counts as one of them. Its sender may be slow."""

WAIT = 30.0
"""Seconds that a request may wait for a thread."""

MOST_WAITING: dict[ThreadKind, int] = {"read": 250, "chart": 120, "metrics": 10, "probe": 10}
"""Maximum number of requests of some kinds that wait for a thread. A request that waits holds a connection, and so does
each event stream (`bench.hub.web.live`). The rest of the connections (`bench.hub.web.protocol`) is for writes and
`/healthz`."""

ARRIVAL: ContextVar[float] = ContextVar("ARRIVAL")
"""When the request of this thread arrived, by `time.monotonic`."""

START: ContextVar[float] = ContextVar("START")
"""When this thread began to work on it. Everything that it reads is from this moment or later."""

WAITING: ContextVar[int] = ContextVar("WAITING")
"""How many requests of the same kind waited for a thread when this thread began."""

T = TypeVar("T")


class RequestThreads:
    """The threads of one hub."""

    def __init__(self) -> None:
        self._limiters = {kind: CapacityLimiter(number) for kind, number in THREADS.items()}
        self._unlimited = CapacityLimiter(math.inf)
        self._pause_ends = dict.fromkeys(PAUSES, 0.0)
        self._writes = 0
        self._crowd_is_gone = anyio.Event()
        self._crowd_is_gone.set()

    async def run(self, kind: ThreadKind, work: Callable[[], T]) -> T:
        """Run work in a thread of a kind, and return its result.

        Raises:
            Problem: all threads of this kind were busy for too long, or too many requests wait for them.
        """
        if self._limiters[kind].statistics().tasks_waiting >= MOST_WAITING.get(kind, math.inf):
            raise _busy()
        ARRIVAL.set(time.monotonic())
        return await self._run(kind, work)

    async def _hold(self, kind: ThreadKind) -> None:
        """Wait until no crowd of documents is left, for a limited time.

        A page waits after those that arrived before it. So pages do not all begin when a crowd has gone for a moment.
        """
        until = max(ARRIVAL.get() + PAGE_PATIENCE, self._pause_ends.get(kind, 0.0))
        with anyio.move_on_after(until - time.monotonic()):
            await self._crowd_is_gone.wait()

    @contextmanager
    def writing(self) -> Iterator[Callable[[], None]]:
        """Leave more time to a write, from the arrival of its document until it is done.

        A document that arrives slowly does not count meanwhile.

        Yields:
            a function to call once the document is complete.
        """
        counts = True
        self._count(1)

        def stop() -> None:
            nonlocal counts
            if counts:
                counts = False
                self._count(-1)

        def complete() -> None:
            nonlocal counts
            slow.cancel()
            if not counts:
                counts = True
                self._count(1)

        slow = asyncio.get_running_loop().call_later(ARRIVAL_SECONDS, stop)
        try:
            yield complete
        finally:
            slow.cancel()
            stop()

    def _count(self, change: int) -> None:
        """Change the number of documents that arrive or are written, and the threads that pages may use meanwhile."""
        before, self._writes = self._writes, self._writes + change
        if (before > 0) != (self._writes > 0):
            self._limit(BESIDE_WRITES if self._writes else {kind: THREADS[kind] for kind in BESIDE_WRITES})
        if before <= CROWD < self._writes:
            self._crowd_is_gone = anyio.Event()
        elif self._writes <= CROWD < before:
            self._crowd_is_gone.set()

    def _limit(self, numbers: Mapping[ThreadKind, int]) -> None:
        for kind, number in numbers.items():
            self._limiters[kind].total_tokens = number

    async def _run(self, kind: ThreadKind, work: Callable[[], T]) -> T:
        limiter, owner = self._limiters[kind], object()
        with anyio.move_on_after(WAIT) as waiting:
            await limiter.acquire_on_behalf_of(owner)
        if waiting.cancelled_caught:
            raise _busy()
        try:
            if kind in BESIDE_WRITES:
                await self._hold(kind)
            WAITING.set(limiter.statistics().tasks_waiting)
            began = time.monotonic()
            try:
                return await to_thread.run_sync(_started, work, limiter=self._unlimited)
            finally:
                if kind in PAUSES:
                    now = time.monotonic()
                    self._pause_ends[kind] = now + min(PAUSES[kind] * (now - began), LONGEST_PAUSE)
        finally:
            limiter.release_on_behalf_of(owner)


def _busy() -> Problem:
    return Problem(503, "busy", "the hub is busy", "Try again.", {"Retry-After": "5"})


def _started(work: Callable[[], T]) -> T:
    START.set(time.monotonic())
    return work()


def in_thread(kind: ThreadKind) -> Callable[[Callable[..., T]], Callable[..., Awaitable[T]]]:
    """Return a decorator for a route with a parameter `hub`: the route runs in a thread of a kind."""

    def decorate(function: Callable[..., T]) -> Callable[..., Awaitable[T]]:
        @wraps(function)
        async def run(**arguments: Any) -> T:
            threads: RequestThreads = arguments["hub"].threads
            return await threads.run(kind, partial(function, **arguments))

        return run

    return decorate
