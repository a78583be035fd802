"""What the hub answers when it refuses: a problem document (RFC 9457), for people a page."""

from __future__ import annotations

from typing import Any

MEDIA_TYPE = "application/problem+json"
URN = "urn:devbench:problem:"

SCHEMA: dict[str, Any] = {
    "title": "Problem",
    "description": "A problem document, as RFC 9457 has it.",
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "hint": {"type": "string", "description": "what to do about it"},
    },
}

TITLES = {
    400: "The request can't be read",
    401: "Who you are is not known",
    404: "There is no such thing",
    405: "This can't be done with it",
    409: "It is final",
    413: "The body is too large",
    415: "The body is no JSON",
    422: "The document is wrong",
    500: "The hub failed",
    503: "The hub is not ready",
}


class Problem(Exception):
    """Refuses a request.

    Args:
        status: HTTP status code.
        kind: word that names the kind of problem for programs, such as "newer-schema".
        detail: what happened, in one sentence.
        hint: what to do about it.
        headers: further headers of the answer.
    """

    def __init__(
        self, status: int, kind: str, detail: str, hint: str = "", headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.hint = hint
        self.headers = headers or {}

    @property
    def title(self) -> str:
        """The same for every problem of this status."""
        return TITLES.get(self.status, "The request is refused")

    def document(self) -> dict[str, Any]:
        """What the body says."""
        found: dict[str, Any] = {
            "type": URN + self.kind,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }
        return found | ({"hint": self.hint} if self.hint else {})


def absent(what: str, name: str) -> Problem:
    """Nothing has this name."""
    return Problem(404, "absent", f"there is no {what} '{name}'", "It may have been removed by the hub's retention.")
