"""Live updates of the page of runs: its changing part as HTML, sent as an event after each change.

All open pages share one database query per second. Keep-alive comments tell a proxy that the stream is alive. A hub
that shuts down ends its streams first.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import suppress

from sqlalchemy.exc import SQLAlchemyError
from sse_starlette import EventSourceResponse

from bench.hub.pages import runs
from bench.hub.pages.layout import fragment
from bench.hub.problems import Problem
from bench.hub.web.state import Hub

INTERVAL = 1.0
"""Seconds between two queries."""

KEEP_ALIVE = 15
"""Seconds between two keep-alive comments."""

MAXIMUM = 200
"""Maximum number of open streams."""


class RunEvents:
    """The events of the page of runs.

    Args:
        hub: the hub that serves the page.
    """

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.streams = 0
        self._rendered_at = -INTERVAL
        self._data = ""
        self._lock = asyncio.Lock()

    async def data(self) -> str:
        """Return the data of the current event, rendered at most once per `INTERVAL`."""
        async with self._lock:
            if time.monotonic() - self._rendered_at >= INTERVAL:
                with suppress(Problem, SQLAlchemyError):  # the pages keep what they show
                    self._data = await self.hub.threads.run("read", self._render)
                self._rendered_at = time.monotonic()
            return self._data

    def _render(self) -> str:
        with self.hub.database.read() as connection:
            return json.dumps(fragment(runs.sections(connection), self.hub.settings.root_path))

    async def events(self) -> AsyncIterator[dict[str, str]]:
        """Yield an event now, and one after each change. No event if too many streams began at the same time."""
        if self.streams >= MAXIMUM:
            return
        self._count(1)
        try:
            sent = None
            while True:
                data = await self.data()
                if data and data != sent:
                    sent = data
                    yield {"event": "runs", "data": data}
                await asyncio.sleep(INTERVAL)
        finally:
            self._count(-1)

    def stream(self) -> EventSourceResponse:
        """Return a response that streams the events.

        Raises:
            Problem: too many streams are open.
        """
        if self.streams >= MAXIMUM:
            raise Problem(503, "too-many-streams", f"{MAXIMUM} streams are open", "The page reloads itself instead.")
        return EventSourceResponse(self.events(), ping=KEEP_ALIVE, headers={"X-Accel-Buffering": "no"})

    def _count(self, change: int) -> None:
        self.streams += change
        self.hub.metrics.streams.set(self.streams)
