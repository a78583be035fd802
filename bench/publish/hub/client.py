"""Speaking to a hub: one document at a time, with retries and back-off while it is away or busy."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from bench.config.settings import TOKEN_VARIABLE
from bench.errors import DevbenchError, SettingsError

if TYPE_CHECKING:
    import urllib3

PATIENT, BRIEF = 6, 0
"""Retries: when there is nothing else to do, and while something is measured."""

BACKOFF = 0.5
"""Seconds before the second retry; each further one waits twice as long."""

CONNECT, READ = 5.0, 30.0
"""Seconds that a hub has to be reached, and to answer."""

LAST = 1.0
"""Seconds for both once a run is interrupted: who stops a container waits for 2 s, and what is not sent is kept."""

BUSY = (429, 500, 502, 503, 504)


class Away(DevbenchError):
    """The hub can't be reached, or can't answer now; sending it later may do."""


class Busy(Away):
    """The hub answers, but can't take this now; another document it may."""


class Refused(DevbenchError):
    """The hub won't take this as things are."""


class Unknown(Refused):
    """The hub does not know the token: a wrong one, or one that is just being rotated."""


class Final(Refused):
    """The hub will never take this, whatever changes."""


FINAL = (409, 413)


class Client:
    """A hub, as whoever sends sees it.

    Args:
        hub: its address, perhaps with a path.
        token: that may write there; none where the hub asks for none.
        renewed: the token that counts now, asked for where the hub does not know the one before.
    """

    def __init__(self, hub: str, token: str | None, renewed: Callable[[], str | None] | None = None) -> None:
        import urllib3

        logging.getLogger("urllib3").setLevel(logging.ERROR)  # what it retries is told in our words
        self.hub = hub.rstrip("/")
        self.token = token
        self.renewed = renewed or (lambda: token)
        self.timeout = urllib3.Timeout(connect=CONNECT, read=READ)
        proxy = _proxy(self.hub)
        self.pool: urllib3.PoolManager = urllib3.ProxyManager(proxy) if proxy else urllib3.PoolManager()

    def hurry(self) -> None:
        """From now on has little patience with the hub."""
        import urllib3

        self.timeout = urllib3.Timeout(total=LAST)

    def put(self, kind: str, name: str, body: bytes, retries: int = PATIENT) -> str:
        """Sends a document; the same twice is one, so it is repeated wherever the answer did not come.

        Args:
            kind: results, runs or explanations.
            name: the document's id.
            body: the document.
            retries: how often at most it is sent again, after longer and longer pauses.

        Returns:
            What became of it at the hub: created, updated, same or superseded.

        Raises:
            Away: it was not taken, and may be later; Busy where the hub said so itself.
            Refused: it is not taken: Unknown where the hub does not know the token, Final where nothing helps.
        """
        sent = self.token
        answer = self._put(kind, name, body, retries)
        if answer.status == 401 and self._renewed_since(sent):
            answer = self._put(kind, name, body, retries)
        if answer.status == 200:
            return str(_said(answer.data).get("outcome", ""))
        said = _said(answer.data)
        detail = str(said.get("detail") or f"it answered {answer.status}")
        if answer.status in BUSY:
            raise Busy(f"the hub {self.hub} does not take {name} now: {detail}")
        refused = Unknown if answer.status == 401 else Final if answer.status in FINAL else Refused
        raise refused(f"the hub {self.hub} refused {name}: {detail}", str(said.get("hint") or _hint(answer.status)))

    def _put(self, kind: str, name: str, body: bytes, retries: int) -> urllib3.BaseHTTPResponse:
        import urllib3

        again = urllib3.Retry(
            total=retries, backoff_factor=BACKOFF, status_forcelist=BUSY, allowed_methods=None, raise_on_status=False,
            respect_retry_after_header=retries > 0, redirect=0, raise_on_redirect=False,
        )  # fmt: skip
        headers = {"User-Agent": "devbench", "Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        address = f"{self.hub}/api/v1/{kind}/{quote(name, safe='')}"
        try:
            return self.pool.request("PUT", address, body=body, headers=headers, retries=again, timeout=self.timeout)
        except urllib3.exceptions.HTTPError as error:
            raise Away(f"the hub {self.hub} can't be reached: {_cause(error)}") from None

    def _renewed_since(self, sent: str | None) -> bool:
        """Takes the token that counts now; returns whether it is another than what was sent.

        The heartbeat's thread may have taken it already.
        """
        with contextlib.suppress(SettingsError):  # its file is gone, or just being written
            self.token = self.renewed()
        return self.token != sent

    def close(self) -> None:
        """Closes all connections."""
        self.pool.clear()


def connected(hub: str, token_file: Path | None) -> Client:
    """A hub, written to with a file's or the variable's token, which is read again when it is rotated.

    Raises:
        SettingsError: the token can't be read.
    """
    return Client(hub, token(token_file), lambda: token(token_file))


def token(file: Path | None) -> str | None:
    """The token that a file or the variable holds; none where neither is given.

    Raises:
        SettingsError: the file can't be read or holds none.
    """
    if file is None:
        return os.environ.get(TOKEN_VARIABLE, "").strip() or None
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"the hub's token can't be read: {error}", "Named by --hub-token-file.") from None
    found = [line for line in lines if line and not line.startswith("#")]
    if not found:
        raise SettingsError(f"there is no token in {file}", "It holds one, on a line of its own.")
    return found[0]


def _proxy(hub: str) -> str | None:
    parts = urlsplit(hub)
    if parts.hostname is None or urllib.request.proxy_bypass(parts.hostname):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def _said(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _cause(error: Exception) -> str:
    """The innermost reason, without objects' addresses."""
    reason: Any = getattr(error, "reason", None)
    text = str(reason if isinstance(reason, Exception) else error)
    return text.rpartition(": ")[2] or type(error).__name__


def _hint(status: int) -> str:
    return "Is this the address of a hub?" if status in (301, 302, 307, 308, 404, 405) else ""
