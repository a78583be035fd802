"""The state of a running hub, and the checks that requests pass. The checks do not block, so they need no thread."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Request

from bench.config.hub_settings import HubSettings
from bench.hub.db.database import Database
from bench.hub.web.auth import Access, Sender
from bench.hub.web.body import BodyLimits
from bench.hub.web.cache import Cached
from bench.hub.web.metrics import HubMetrics
from bench.hub.web.threads import RequestThreads


@dataclass(frozen=True)
class Hub:
    """A running hub.

    Args:
        settings: its settings.
        database: its database, with current tables.
        access: who may read and write.
        metrics: its metrics.
        overview: the rendered overview.
        choices: the values that the filters of the results page offer.
        bodies: limits the bodies in memory.
        threads: serve the requests.
    """

    settings: HubSettings
    database: Database
    access: Access
    metrics: HubMetrics
    overview: Cached[str] = field(default_factory=Cached)
    choices: Cached[dict[str, list[str]]] = field(default_factory=Cached)
    bodies: BodyLimits = field(default_factory=BodyLimits)
    threads: RequestThreads = field(default_factory=RequestThreads)


def hub_of(request: Request) -> Hub:
    """Return the hub that a request came to."""
    return cast("Hub", request.app.state.hub)


async def _current_hub(request: Request) -> Hub:
    return hub_of(request)


CurrentHub = Annotated[Hub, Depends(_current_hub)]
"""Type of a route's parameter: the hub that the request came to."""


async def require_write(request: Request) -> None:
    """Reject a request that may not write everything.

    Raises:
        Problem: it has no valid token, or only that of a run.
    """
    hub_of(request).access.check_write(request.headers.get("authorization"))


async def sender(request: Request) -> Sender:
    """Return who sends a document.

    Raises:
        Problem: the request has no valid token.
    """
    return hub_of(request).access.sender(request.headers.get("authorization"))


CurrentSender = Annotated[Sender, Depends(sender)]
"""Type of a route's parameter: who sends the document."""


async def require_read(request: Request) -> None:
    """Reject a request that may not read.

    Raises:
        Problem: it has neither a user's password nor a token.
    """
    hub_of(request).access.check_read(request.headers.get("authorization"))
