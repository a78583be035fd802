"""Why a hub has not taken or answered a request."""

from __future__ import annotations

from bench.errors import DevbenchError


class HubUnavailable(DevbenchError):
    """The hub cannot be reached, or cannot answer now. The same request may work later."""


class HubBusy(HubUnavailable):
    """The hub answers, but cannot serve this request now. It may serve another one."""


class HubRefused(DevbenchError):
    """The hub refuses this request."""


class UnknownToken(HubRefused):
    """The hub does not know the token. It is wrong, or it is being rotated."""


class RefusedForever(HubRefused):
    """The hub will never accept this document."""
