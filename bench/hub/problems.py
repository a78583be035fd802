"""Problems: why the hub rejects a request, as a problem document (RFC 9457)."""

from __future__ import annotations

from typing import Any

MEDIA_TYPE = "application/problem+json"
URN = "urn:devbench:problem:"

SCHEMA: dict[str, Any] = {
    "title": "Problem",
    "description": "A problem document as defined by RFC 9457.",
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "hint": {"type": "string", "description": "What to do about it."},
    },
}

TITLES = {
    400: "Invalid request",
    401: "Not authorized",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "The stored result is final",
    413: "The document is too large",
    415: "The document is not JSON",
    422: "Invalid document or parameter",
    500: "Internal error",
    503: "Temporarily unavailable",
}


class Problem(Exception):
    """A request is rejected.

    Args:
        status: HTTP status code.
        kind: identifies the kind of problem for programs, such as "newer-schema".
        detail: what happened, in one sentence.
        hint: what to do about it.
        headers: additional headers of the response.
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
        """The title that all problems of this status share."""
        return TITLES.get(self.status, "Request rejected")

    def document(self) -> dict[str, Any]:
        """Return the problem document."""
        document: dict[str, Any] = {
            "type": URN + self.kind,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }
        return document | ({"hint": self.hint} if self.hint else {})


def not_found(what: str, name: str) -> Problem:
    """Return the problem that there is nothing of this name."""
    return Problem(404, "not-found", f"{what} '{name}' not found", "Retention may have removed it.")
