"""Who may write, by bearer tokens, and who may read, by HTTP Basic where reading is closed.

Tokens and readers stand in a file, which is read anew when it changes, so that one can be added and another taken
away while the hub runs, or in a variable. All are compared in full and in constant time, so that how long an answer
takes says nothing of them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import os
from pathlib import Path

from bench.config.hub_settings import READERS, TOKENS, HubSettings
from bench.errors import SettingsError
from bench.hub.problems import Problem

LOG = logging.getLogger("devbench.hub")

LOOPBACK = ("127.0.0.1", "::1", "localhost")
SHORTEST = 16
"""Characters of a token."""

REALM = 'realm="devbench", charset="UTF-8"'


class Secrets:
    """Lines of a file, or of a variable with commas between them; read again when the file changes."""

    def __init__(self, file: Path | None, variable: str) -> None:
        self.file = file
        self._fixed = _clean(os.environ.get(variable, "").split(","))
        self._read: tuple[object, tuple[bytes, ...]] = (None, ())
        if file is not None:
            self.known()

    def __bool__(self) -> bool:
        return self.file is not None or bool(self._fixed)

    def known(self) -> tuple[bytes, ...]:
        """Hashes of what is known now.

        Raises:
            SettingsError: the file can't be read, and never could be; later its last state counts.
        """
        if self.file is None:
            return self._fixed
        try:
            state = self.file.stat()
            mark = (state.st_mtime_ns, state.st_size, state.st_ino)
            if mark != self._read[0]:
                self._read = (mark, _clean(self.file.read_text(encoding="utf-8").splitlines()))
        except (OSError, UnicodeDecodeError, SettingsError) as error:
            if self._read[0] is not None:
                LOG.error("%s is not taken over: %s", self.file, error)
            elif isinstance(error, SettingsError):
                raise
            else:
                raise SettingsError(f"{self.file} can't be read: {error}", "It holds one secret a line.") from None
        return (*self._fixed, *self._read[1])

    def holds(self, given: str) -> bool:
        """Whether this is one of them, all of which are looked at."""
        asked = _hash(given)
        return sum([hmac.compare_digest(asked, each) for each in self.known()]) > 0


class Access:
    """Decides about requests by their `Authorization`.

    Args:
        settings: names the files; the variables are read too.

    Raises:
        SettingsError: a file can't be read, or writing would be open to a network.
    """

    def __init__(self, settings: HubSettings) -> None:
        self.tokens = Secrets(settings.tokens_file, TOKENS)
        self.readers = Secrets(settings.readers_file, READERS)
        if not self.tokens and settings.host not in LOOPBACK:
            raise SettingsError(
                f"without a token everyone who reaches {settings.host} could write",
                f"Name a file of tokens with --tokens-file, or give them in {TOKENS}.",
            )

    def write(self, authorization: str | None) -> None:
        """Lets whoever has a token write; without any tokens, whoever is on this machine.

        Raises:
            Problem: it is none of the tokens.
        """
        if not self.tokens or self._bearer(authorization):
            return
        what = "this token is not known" if authorization else "writing needs a token"
        raise Problem(
            401,
            "unauthorized",
            what,
            "Send it as `Authorization: Bearer TOKEN`; devbench does with --hub-token-file or DEVBENCH_HUB_TOKEN.",
            {"WWW-Authenticate": f"Bearer {REALM}"},
        )

    def read(self, authorization: str | None) -> None:
        """Lets readers and whoever has a token read; without any readers, everyone.

        Raises:
            Problem: it is none of them.
        """
        if not self.readers or self._bearer(authorization):
            return
        kind, _, given = (authorization or "").partition(" ")
        if kind.lower() == "basic" and self.readers.holds(_decoded(given)):
            return
        raise Problem(
            401,
            "unauthorized",
            "reading needs a user and a password",
            headers={"WWW-Authenticate": f"Basic {REALM}"},
        )

    def _bearer(self, authorization: str | None) -> bool:
        kind, _, given = (authorization or "").partition(" ")
        return kind.lower() == "bearer" and self.tokens.holds(given.strip())


def _clean(lines: list[str]) -> tuple[bytes, ...]:
    texts = [line.strip() for line in lines]
    found = [text for text in texts if text and not text.startswith("#")]
    for each in found:
        if len(each) < SHORTEST:
            raise SettingsError(
                f"a secret of {len(each)} characters can be guessed",
                f"Take {SHORTEST} or more, such as `openssl rand -hex 16` writes.",
            )
    return tuple(map(_hash, found))


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def _decoded(given: str) -> str:
    try:
        return base64.b64decode(given, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return ""
