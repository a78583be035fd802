"""Authentication: bearer tokens may write; HTTP Basic users may read if reading is restricted.

A token of a run (`publish.hub.run_token`) may only write the documents of that run.

Tokens and users are in a file, which is read again when it changes, or in a variable. So a token can be added or
removed while the hub runs. All secrets are compared in full and in constant time: the response time reveals nothing.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
import os
import re
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from bench.config.hub_settings import HubSettings
from bench.config.secret_variables import READERS, TOKENS
from bench.errors import SettingsError
from bench.hub.problems import Problem
from bench.publish.hub import run_token

LOG = logging.getLogger("devbench.hub")

LOOPBACK = ("127.0.0.1", "::1", "localhost")
MINIMUM_LENGTH = 16
"""Minimum length of a secret, in characters."""

REALM = 'realm="devbench", charset="UTF-8"'


@dataclass(frozen=True)
class SecretForm:
    """The form of a secret.

    Args:
        pattern: a regular expression that the whole secret matches.
        description: the same in words.
        without: what follows if a file has no secret.
    """

    pattern: str
    description: str
    without: str


TOKEN = SecretForm(r"\S+", "a token without spaces", "Nobody can write.")
READER = SecretForm(r"[^:]+:.+", "USER:PASSWORD", "Only tokens can read.")


class Secrets:
    """Secrets from the lines of a file, which is read again when it changes, and from a comma-separated variable.

    Args:
        file: one secret per line, or None.
        variable: name of the environment variable.
        form: the form of each secret.

    Raises:
        SettingsError: the file cannot be read, or a secret is invalid.
    """

    def __init__(self, file: Path | None, variable: str, form: SecretForm) -> None:
        self.file = file
        self.form = form
        self._from_variable = _hashes(os.environ.get(variable, "").split(","), form, ("entry", variable))
        self._from_file: tuple[bytes, ...] = ()
        self._file_state: object = None
        self._ignored = ""
        if file is not None:
            self.hashes()

    def __bool__(self) -> bool:
        return self.file is not None or bool(self._from_variable)

    def hashes(self) -> tuple[bytes, ...]:
        """Return the hashes of the current secrets.

        Raises:
            SettingsError: the file cannot be read for the first time. Later its last valid content counts.
        """
        if self.file is None:
            return self._from_variable
        try:
            stat = self.file.stat()
            state = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if state != self._file_state:
                if not S_ISREG(stat.st_mode):
                    raise SettingsError(f"{self.file} is not a regular file", "The hub reads it again when it changes.")
                lines = self.file.read_text(encoding="utf-8-sig").splitlines()
                self._from_file = _hashes(lines, self.form, ("line", str(self.file)))
                self._file_state, self._ignored = state, ""
                if not self._from_file:
                    LOG.warning("%s holds no secret. %s", self.file, self.form.without)
        except (OSError, UnicodeDecodeError, SettingsError) as error:
            if self._file_state is not None:
                if str(error) != self._ignored:  # every request reads the file
                    LOG.error("ignoring the change of %s: %s", self.file, error)
                self._ignored = str(error)
            elif isinstance(error, SettingsError):
                raise
            else:
                raise SettingsError(f"cannot read {self.file}: {error}", "It holds one secret per line.") from None
        return (*self._from_variable, *self._from_file)

    def contains(self, secret: str) -> bool:
        """Return whether this is one of the secrets, after comparing it with all of them."""
        given = run_token.key(secret)
        return sum([hmac.compare_digest(given, valid) for valid in self.hashes()]) > 0


@dataclass(frozen=True)
class Sender:
    """Who sends documents.

    Args:
        run: id of the only run whose documents it may write. None if it may write all.
    """

    run: str | None = None

    def check_run(self, id_: str) -> None:
        """Check that the sender may write the state of a run.

        Raises:
            Problem: it may not.
        """
        if self.run is not None and id_ != self.run:
            raise self._forbidden(id_)

    def check(self, *ids: str | None) -> None:
        """Check that the sender may write a result or an explanation.

        Args:
            ids: the id of the document, and those of the group and the parent that it names.

        Raises:
            Problem: it may not.
        """
        for id_ in ids:
            if self.run is not None and id_ is not None and not run_token.is_own(self.run, id_):
                raise self._forbidden(id_)

    def _forbidden(self, id_: str) -> Problem:
        return Problem(
            403,
            "forbidden",
            f"this token may only write the run '{self.run}', and not '{id_}'",
            f"Use it with --run-id {self.run}, or use another token.",
        )


class Access:
    """Decides whether a request may read or write, by its `Authorization` header.

    Args:
        settings: the settings of the hub, which name the files. The variables are read too.

    Raises:
        SettingsError: a file cannot be read, or anyone on the network could write.
    """

    def __init__(self, settings: HubSettings) -> None:
        self.tokens = Secrets(settings.tokens_file, TOKENS, TOKEN)
        self.readers = Secrets(settings.readers_file, READERS, READER)
        if not self.tokens and settings.host not in LOOPBACK:
            raise SettingsError(
                f"without a token, everyone who can reach {settings.host} could write to the hub",
                f"Set --tokens-file to a file of tokens, or set {TOKENS}.",
            )

    def check_write(self, authorization: str | None) -> None:
        """Check that a request may write everything. If the hub has tokens, it needs one of them.

        Raises:
            Problem: the request has no valid token, or only that of a run.
        """
        run = self.sender(authorization).run
        if run is not None:
            raise _forbidden_except_writing(run)

    def sender(self, authorization: str | None) -> Sender:
        """Return who sends a document. If the hub has no tokens, everyone may send all documents.

        Raises:
            Problem: the request has no valid token.
        """
        if not self.tokens or self._has_token(authorization):
            return Sender()
        run = self._run(authorization)
        if run is not None:
            return Sender(run)
        raise Problem(
            401,
            "unauthorized",
            "the token is not valid" if authorization else "writing requires a token",
            "Send it as `Authorization: Bearer TOKEN`. With devbench, use --hub-token-file or DEVBENCH_HUB_TOKEN.",
            {"WWW-Authenticate": f"Bearer {REALM}"},
        )

    def check_read(self, authorization: str | None) -> None:
        """Check that a request may read. If the hub has users, it needs a user's password or a token.

        Raises:
            Problem: the request has neither, or only the token of a run.
        """
        if not self.readers or self._has_token(authorization):
            return
        scheme, _, credentials = (authorization or "").partition(" ")
        if scheme.lower() == "basic" and self.readers.contains(_decode(credentials)):
            return
        run = self._run(authorization)
        if run is not None:
            raise _forbidden_except_writing(run)
        raise Problem(
            401,
            "unauthorized",
            "reading requires a user and a password",
            headers={"WWW-Authenticate": f"Basic {REALM}"},
        )

    def _has_token(self, authorization: str | None) -> bool:
        return self.tokens.contains(_bearer(authorization))

    def _run(self, authorization: str | None) -> str | None:
        """Return the id of the run whose token the request has. None if it has none that is valid."""
        return run_token.run_of(_bearer(authorization), self.tokens.hashes())


def _bearer(authorization: str | None) -> str:
    scheme, _, token = (authorization or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _forbidden_except_writing(run: str) -> Problem:
    return Problem(403, "forbidden", f"this token may only write the run '{run}'", "Use another token.")


def _hashes(lines: list[str], form: SecretForm, source: tuple[str, str]) -> tuple[bytes, ...]:
    numbered = [(number, line.strip()) for number, line in enumerate(lines, 1)]
    secrets = [(number, line) for number, line in numbered if line and not line.startswith("#")]
    for number, secret in secrets:
        if not re.fullmatch(form.pattern, secret):
            unit, name = source
            raise SettingsError(
                f"{unit} {number} of {name} is not {form.description}", "Lines that begin with # are ignored."
            )
        if len(secret) < MINIMUM_LENGTH:
            raise SettingsError(
                f"a secret has only {len(secret)} characters",
                f"Use {MINIMUM_LENGTH} characters or more, for example from `openssl rand -hex 16`.",
            )
    return tuple(run_token.key(secret) for _, secret in secrets)


def _decode(credentials: str) -> str:
    try:
        return base64.b64decode(credentials, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return ""
