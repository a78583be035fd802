"""The events of the page of runs: its changing part, written by the hub, each time that it has changed.

One look at the database a second serves all that listen. Keep-alives tell a proxy that the stream lives; a hub that is
told to stop ends its streams first.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

from sse_starlette import EventSourceResponse
from starlette.concurrency import run_in_threadpool

from bench.hub.pages import runs
from bench.hub.pages.layout import fragment
from bench.hub.problems import Problem
from bench.hub.web.state import Hub

EVERY = 1.0
"""Seconds between two looks."""

KEEP_ALIVE = 15
"""Seconds."""

MOST = 200
"""Open streams."""


class Board:
    """What the page shows now, looked up at most once in `EVERY` for everyone.

    Args:
        hub: whose runs.
    """

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.open = 0
        self._looked = -EVERY
        self._text = ""
        self._lock = asyncio.Lock()

    async def text(self) -> str:
        """The part, as an event carries it."""
        async with self._lock:
            if time.monotonic() - self._looked >= EVERY:
                self._text = await run_in_threadpool(self._made)
                self._looked = time.monotonic()
            return self._text

    def _made(self) -> str:
        with self.hub.database.read() as connection:
            return json.dumps(fragment(runs.sections(connection), self.hub.settings.root_path))

    async def changes(self) -> AsyncIterator[dict[str, str]]:
        """An event now, and one after each change."""
        self._count(1)
        try:
            before = None
            while True:
                text = await self.text()
                if text != before:
                    before = text
                    yield {"event": "runs", "data": text}
                await asyncio.sleep(EVERY)
        finally:
            self._count(-1)

    def stream(self) -> EventSourceResponse:
        """The answer that carries them.

        Raises:
            Problem: too many listen already.
        """
        if self.open >= MOST:
            raise Problem(503, "too-many", f"{MOST} pages listen already", "The page loads itself again without it.")
        return EventSourceResponse(self.changes(), ping=KEEP_ALIVE, headers={"X-Accel-Buffering": "no"})

    def _count(self, more: int) -> None:
        self.open += more
        self.hub.metrics.streams.set(self.open)
