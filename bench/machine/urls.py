"""URLs in texts that are shown or stored."""

from __future__ import annotations

import re

_USERINFO = re.compile(r"(?<=://)[^/\s]*@")


def without_user(text: str) -> str:
    """Return a text without the users, passwords and tokens of its URLs."""
    return _USERINFO.sub("", text)
