"""The client of a hub, with retries and back-off while the hub is unavailable.

A hub, or a proxy before it, may accept a connection and never answer, or answer byte by byte. A request therefore has
one time limit, which includes its retries. Only a receipt for the document itself counts as delivered, because a proxy
may answer with a page that asks for a login.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from bench.errors import SettingsError
from bench.model.receipt import WRITE_OUTCOMES
from bench.publish.hub.errors import HubBusy, HubRefused, HubUnavailable, refusal
from bench.publish.hub.proxy import pool_of
from bench.publish.hub.token import token

PATIENT, BRIEF = 6, 0
"""Number of retries after the measurement, and while it runs. Those that the hub asks for do not count."""

BACKOFF = 0.5
"""Half the seconds before the second retry. The first follows at once, and each further one waits twice as long."""

CONNECT, READ = 5.0, 30.0
"""Timeouts in seconds: to connect or to send a part of a document, and to get an answer."""

PART = 64 * 1024
"""Size in bytes of the parts in which a document is sent. A document in one part would have one timeout as a whole."""

LONG, SHORT = 60.0, 10.0
"""Time limits of a request in seconds: with retries, and without."""

SLOWEST = 100_000.0
"""Bytes per second. A large document has more time: as long as it takes at this rate."""

RETRY_AFTER = 10.0
"""Maximum seconds to wait because the hub asks for it."""

LAST = 1.0
"""Time limit of a request in seconds after an interruption. A container has 2 s to stop. The outbox keeps the rest."""

ANSWER = 64 * 2**20
"""Maximum size of an answer, in bytes."""

BUSY = (429, 500, 502, 503, 504)
"""Statuses after which the same request may succeed later."""

ADDRESS_HINT = "Is this the address of a hub?"


class Answer(NamedTuple):
    """An HTTP response: its status, its body, and the seconds after which the hub asks to try again."""

    status: int
    data: bytes
    retry_after: float


class Client:
    """Sends documents to a hub and queries it.

    Args:
        hub: The hub's address, which may have a path.
        token: The token for writing and reading. None if the hub needs none.
        read_token: Reads the current token. It is called when the hub does not know the last one.

    Attributes:
        last_answer: When the last answer came, by `time.monotonic`. Minus infinity if none came.
    """

    def __init__(self, hub: str, token: str | None, read_token: Callable[[], str | None] | None = None) -> None:

        logging.getLogger("urllib3").setLevel(logging.ERROR)  # devbench reports failures itself
        self.hub = hub.rstrip("/")
        self.token = token
        self.read_token = read_token or (lambda: token)
        self.shortened = False
        self.last_answer = -math.inf
        self.pool = pool_of(self.hub)

    def shorten_timeouts(self) -> None:
        """Limit each further request to `LAST` seconds, with its retries."""
        self.shortened = True

    def put(self, kind: str, name: str, body: bytes, retries: int = PATIENT, limit: float = math.inf) -> str:
        """Send a document. Sending it twice has the same effect as once, so it is repeated if no answer comes.

        Args:
            kind: results, runs or explanations.
            name: The document's id.
            body: The document.
            retries: Maximum number of retries.
            limit: When to give up, by `time.monotonic`. The time limit of a request applies too.

        Returns:
            The outcome at the hub: created, updated, same or superseded.

        Raises:
            HubUnavailable: The hub did not take it, but may later. HubBusy if the hub said so itself.
            HubRefused: The hub refused it. UnknownToken if the token is unknown, RefusedForever if retrying is useless,
                NotFromHub if something else than a hub answered.
        """
        answer = self._request(
            "PUT", f"/api/v1/{kind}/{quote(name, safe='', errors='surrogatepass')}", name, retries, body, limit
        )
        if answer.get("id") != name or answer.get("outcome") not in WRITE_OUTCOMES:
            raise HubUnavailable(
                f"{self.hub} answered, but gave no receipt for {name}", f"{ADDRESS_HINT} Does a proxy ask for a login?"
            )
        return str(answer["outcome"])

    def get(self, path: str, retries: int = BRIEF) -> dict[str, Any]:
        """Query the hub.

        Args:
            path: The path below the hub's address, with its query, such as /api/v1/runs?limit=10.
            retries: Maximum number of retries.

        Returns:
            The JSON object in the answer.

        Raises:
            HubUnavailable: The hub did not answer, but may later. HubBusy if the hub said so itself.
            HubRefused: The hub refused the query, or did not answer with JSON. UnknownToken if the token is unknown.
        """
        answer = self._request("GET", path, path, retries)
        if not answer:
            raise HubRefused(f"the hub {self.hub} answered {path} without a JSON object", ADDRESS_HINT)
        return answer

    def _request(
        self,
        method: str,
        path: str,
        subject: str,
        retries: int,
        body: bytes | None = None,
        limit: float = math.inf,
    ) -> dict[str, Any]:
        """Return the JSON object that the hub answered with, or an empty one if it answered with something else.

        Args:
            method: The method of HTTP.
            path: The path below the hub's address.
            subject: What is sent or queried, for errors.
            retries: Maximum number of retries.
            body: The document to send.
            limit: When to give up, by `time.monotonic`.
        """
        token = self.token
        seconds = LAST if self.shortened else (LONG if retries else SHORT) + len(body or b"") / SLOWEST
        limit = min(limit, time.monotonic() + seconds)
        answer = self._send(method, path, body, retries, limit)
        if answer.status == 401 and self._has_new_token(token):
            answer = self._send(method, path, body, retries, limit)
        document = _document(answer.data)
        if answer.status == 200:
            return document
        detail = str(document.get("detail") or f"it answered {answer.status}")
        if answer.status in BUSY:
            verb = "answer" if body is None else "take"
            raise HubBusy(f"the hub {self.hub} cannot {verb} {subject} now: {detail}")
        raise refusal(answer.status, document)(
            f"the hub {self.hub} refused {subject}: {detail}", str(document.get("hint") or _hint(answer.status))
        )

    def _send(self, method: str, path: str, body: bytes | None, retries: int, limit: float) -> Answer:
        """Send a request until it gets an answer other than that the hub is busy.

        Raises:
            HubUnavailable: There was no answer within the limits.
        """
        headers = {"User-Agent": "devbench"}
        if body is not None:
            headers |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        for attempt in itertools.count():
            pause = BACKOFF * 2**attempt if attempt else 0.0
            try:
                answer = self._within(limit, lambda: self._exchange(method, path, body, headers))
            except HubUnavailable:
                if attempt >= retries or time.monotonic() + pause >= limit:
                    raise
            else:
                asked = retries > 0 and answer.retry_after > 0
                pause = min(RETRY_AFTER, answer.retry_after) if asked else pause
                may_retry = asked or attempt < retries
                if answer.status not in BUSY or not may_retry or time.monotonic() + pause >= limit:
                    return answer
            time.sleep(pause)
        raise AssertionError

    def _exchange(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        """Send a request once.

        Raises:
            HubUnavailable: It was not answered.
        """
        import urllib3

        timeout = urllib3.Timeout(connect=CONNECT, read=READ)
        try:
            parts = (body[start : start + PART] for start in range(0, len(body), PART)) if body is not None else None
            with self.pool.request(
                method, self.hub + path, body=parts, headers=headers, timeout=timeout, retries=False, redirect=False,
                preload_content=False,
            ) as response:  # fmt: skip
                retry_after = 0.0
                with contextlib.suppress(urllib3.exceptions.InvalidHeader, ValueError):  # too many digits
                    retry_after = urllib3.Retry().get_retry_after(response) or 0.0
                answer = Answer(response.status, response.read(ANSWER), retry_after)
                self.last_answer = time.monotonic()
                return answer
        except urllib3.exceptions.HTTPError as error:
            raise HubUnavailable(f"cannot reach the hub {self.hub}: {_cause(error)}") from None

    def _within(self, limit: float, work: Callable[[], Answer]) -> Answer:
        """Return the result of a request, made in a thread, because urllib3 only limits the time of its parts.

        Args:
            limit: When to give up, by `time.monotonic`. The thread ends with its connection, or with this process.
            work: A request.

        Raises:
            HubUnavailable: The time is over, or the request was not answered.
        """
        future: Future[Answer] = Future()

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        seconds = max(0.0, limit - time.monotonic())
        try:
            return future.result(None if math.isinf(limit) else seconds)
        except FutureTimeout:
            raise HubUnavailable(f"the hub {self.hub} did not answer in time") from None

    def _has_new_token(self, sent: str | None) -> bool:
        """Read the current token, and return whether it differs from the one that was sent.

        The thread of the heartbeat may have read it already.
        """
        with contextlib.suppress(SettingsError):  # its file is gone or is being written
            self.token = self.read_token()
        return self.token != sent

    def close(self) -> None:
        """Close all connections."""
        self.pool.clear()


def connect(hub: str, token_file: Path | None) -> Client:
    """Return a client whose token comes from a file or the variable, and is read again when it is rotated.

    Raises:
        SettingsError: The token cannot be read.
    """
    return Client(hub, token(token_file), lambda: token(token_file))


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _cause(error: Exception) -> str:
    """Return the innermost reason, without the addresses of objects."""
    reason: Any = getattr(error, "reason", None)
    text = str(reason if isinstance(reason, Exception) else error)
    return text.rpartition(": ")[2] or type(error).__name__


def _hint(status: int) -> str:
    if status == 401:
        return "--hub-token-file names the file of the token."
    return ADDRESS_HINT if status in (301, 302, 307, 308, 404, 405) else ""
