"""Removes user names and passwords from URLs, so that they are in no message and no result."""

from __future__ import annotations

import re

_USERINFO = re.compile(r"(?<=://)[^/\s]+@")
"""User and password of a URL. A password that is not encoded may contain another @."""


def without_credentials(text: str) -> str:
    """Return a text whose URLs name no user and no password."""
    return _USERINFO.sub("", text)
