"""What a running hub has, and the gates that a request passes; they wait for nothing, so no thread is asked to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from fastapi import Request

from bench.config.hub_settings import HubSettings
from bench.hub.db.database import Database
from bench.hub.web.auth import Access
from bench.hub.web.body import Room
from bench.hub.web.cache import Kept
from bench.hub.web.metrics import Metrics


@dataclass(frozen=True)
class Hub:
    """A running hub.

    Args:
        settings: what it was asked to be.
        database: brought up to date.
        access: who may write and read.
        metrics: what Prometheus is told.
        overview: the page.
        choices: the values that the list's filters can have.
        large: how many large bodies it holds.
    """

    settings: HubSettings
    database: Database
    access: Access
    metrics: Metrics
    overview: Kept[str] = field(default_factory=Kept)
    choices: Kept[dict[str, list[str]]] = field(default_factory=Kept)
    large: Room = field(default_factory=Room)


def of(request: Request) -> Hub:
    """The hub that a request came to."""
    return cast("Hub", request.app.state.hub)


async def hub(request: Request) -> Hub:
    """The same, for what is given it."""
    return of(request)


async def may_write(request: Request) -> None:
    """Lets a request pass that may write.

    Raises:
        Problem: it may not.
    """
    of(request).access.write(request.headers.get("authorization"))


async def may_read(request: Request) -> None:
    """Lets a request pass that may read.

    Raises:
        Problem: it may not.
    """
    of(request).access.read(request.headers.get("authorization"))
