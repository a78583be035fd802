"""Why a hub has not taken or answered a request."""

from __future__ import annotations

from typing import Any

from bench.errors import DevbenchError

PROBLEM = "urn:devbench:problem:"
"""Start of the type of each problem that a hub answers with."""

FINAL = (409, 413)
"""Statuses after which the hub never accepts the document."""


class HubUnavailable(DevbenchError):
    """The hub cannot be reached, or cannot answer now. The same request may work later."""


class HubBusy(HubUnavailable):
    """The hub answers, but cannot serve this request now. It may serve another one."""


class HubRefused(DevbenchError):
    """The hub refuses this request."""


class UnknownToken(HubRefused):
    """The hub does not know the token. It is wrong, or it is being rotated."""


class NotFromHub(HubRefused):
    """Something else than a hub refused the request, such as a proxy whose hub is being replaced."""


class RefusedForever(HubRefused):
    """The hub will never accept this document."""


def refusal(status: int, document: dict[str, Any]) -> type[HubRefused]:
    """Return what an answer means: its status, and the JSON object in it. A hub answers with a problem."""
    if status == 401:
        return UnknownToken
    if not str(document.get("type", "")).startswith(PROBLEM):
        return NotFromHub
    return RefusedForever if status in FINAL else HubRefused
