"""The token for a hub, from a file or a variable."""

from __future__ import annotations

import os
from pathlib import Path

from bench.config.secret_variables import TOKEN as TOKEN_VARIABLE
from bench.errors import SettingsError


def token(file: Path | None) -> str | None:
    """Return the token in a file or in the variable. None if there is neither.

    Raises:
        SettingsError: The file cannot be read or holds no token, or a request cannot carry the token.
    """
    found = os.environ.get(TOKEN_VARIABLE, "").strip() if file is None else _first(file)
    if not found.isascii() or not found.isprintable():
        place = TOKEN_VARIABLE if file is None else str(file)
        raise SettingsError(f"the token in {place} has a character that no request can carry", "Use printable ASCII.")
    return found or None


def _first(file: Path) -> str:
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the hub's token: {error}", "--hub-token-file names the file.") from None
    tokens = [line for line in lines if line and not line.startswith("#")]
    if not tokens:
        raise SettingsError(f"no token in {file}", "Put the token on a line of its own.")
    return tokens[0]
