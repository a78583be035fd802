"""The probe of liveness, which needs no thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from bench.config.hub_settings import load
from bench.hub.db.database import Database
from bench.hub.web import app

pytestmark = [pytest.mark.once, pytest.mark.essential]


def test_a_hub_whose_threads_are_all_busy_answers_that_it_is_alive(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "hub.db"))
    application = app.create(load(), database)
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/healthz",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    statuses: list[int] = []

    async def send(message: Any) -> None:
        statuses.extend([message["status"]] if message["type"] == "http.response.start" else [])

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def request() -> None:
        threads = to_thread.current_default_thread_limiter()
        for owner in range(int(threads.total_tokens)):
            threads.acquire_on_behalf_of_nowait(owner)
        with anyio.fail_after(60):
            await application(scope, receive, send)

    anyio.run(request)
    assert statuses == [200]
    database.close()
