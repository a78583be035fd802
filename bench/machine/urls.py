"""URLs in texts that are shown or stored."""

from __future__ import annotations

import re

_USERINFO = re.compile(r"(?<=://)[^/\s]*@")
"""User and password of a URL. A password that is not encoded may contain another @."""


def without_user(text: str) -> str:
    """Return a text without the users, passwords and tokens of its URLs."""
    return _USERINFO.sub("", text)
