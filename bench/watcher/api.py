"""A minimal client of the Kubernetes API server: list objects, follow their changes, and end Jobs.

A watch continues from the last version. If that version is too old (410), or if a request fails, the list is read
again. Pauses between failures grow, as in Kubernetes' own clients. The token is read again for each request, because it
changes every hour.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import urllib3
from urllib3.connection import HTTPConnection

from bench.errors import DevbenchError, SettingsError
from bench.watcher.backoff import Backoff
from bench.watcher.health import Health
from bench.watcher.prune import Object, ObjectKind, prune

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
PAGE = 500
"""Objects per response."""

WATCH_SECONDS = 300
"""Seconds after which the server ends a watch. The next one continues where it ended."""

SHORT_WATCH = 1.0
"""Seconds. A watch that ends sooner and without an event counts as a failure, as in Kubernetes' own clients."""

SOCKET_OPTIONS = [
    *HTTPConnection.default_socket_options,
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
]
"""TCP keep-alive that detects a dead peer of a watch within half a minute."""

PATHS: dict[ObjectKind, str] = {"Job": "/apis/batch/v1/namespaces/{}/jobs", "Pod": "/api/v1/namespaces/{}/pods",
                          "Event": "/api/v1/namespaces/{}/events"}  # fmt: skip
FIELDS: dict[ObjectKind, str] = {"Job": "", "Pod": "", "Event": "type=Warning"}
"""Field selectors. The server sends only the objects that match."""


class Expired(Exception):
    """The server no longer has the version from which a watch should continue."""


class Unavailable(DevbenchError):
    """The API server does not respond or refuses a request."""


@dataclass(frozen=True)
class Change:
    """A change of objects of one kind.

    Attributes:
        kind: the kind of the objects.
        action: "LIST" replaces all known objects of the kind, "SET" adds or modifies one, "DELETED" removes one.
        objects: all objects of the kind, or the one that changed.
    """

    kind: ObjectKind
    action: Literal["LIST", "SET", "DELETED"]
    objects: tuple[Object, ...]


class Server:
    """The API server of a cluster.

    Args:
        namespace: the namespace of the objects. Default: the pod's own.
        url: the address of the API server. Default: that of the pod's own cluster.
        account: folder with `token`, `ca.crt` and `namespace`, as pods have it.

    Raises:
        SettingsError: no URL is given, and this is not a pod.
    """

    def __init__(self, namespace: str | None = None, url: str | None = None, account: Path = ACCOUNT) -> None:
        self.account = account
        self.url = (url or _own_cluster()).rstrip("/")
        self.namespace = namespace or _read(account / "namespace") or "default"
        authority = account / "ca.crt"
        context = ssl.create_default_context(cafile=str(authority) if authority.exists() else None)
        # Some clusters' certificates lack fields that RFC 5280 requires. Python 3.13 rejects them, Kubernetes does not.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        self._pool = urllib3.PoolManager(
            maxsize=4, block=False, ssl_context=context, retries=False, socket_options=SOCKET_OPTIONS
        )

    def list(self, kind: ObjectKind, selector: str) -> tuple[tuple[Object, ...], str]:
        """Return all objects of a kind, pruned, and the version of the list, which is read in pages.

        Raises:
            Expired: a page is too old to be continued.
            Unavailable: the server does not respond or refuses.
        """
        objects: list[Object] = []
        token = ""
        while True:
            query = {"limit": str(PAGE), "continue": token}
            response = self._get(kind, selector, query)
            try:
                with response:
                    body = json.loads(response.read())
            except (urllib3.exceptions.HTTPError, OSError, json.JSONDecodeError) as error:
                raise Unavailable(f"the list of {kind}s ended early: {error}", "") from None
            objects += [prune(kind, item) for item in body.get("items") or []]
            token = body["metadata"].get("continue", "")
            if not token:
                return tuple(objects), body["metadata"]["resourceVersion"]

    def watch(self, kind: ObjectKind, selector: str, version: str) -> Iterator[tuple[str, Object]]:
        """Yield the type and the object of each event since a version, until the server ends the watch.

        Raises:
            Expired: the version is too old.
            Unavailable: the server does not respond or refuses.
        """
        query = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": version,
                 "timeoutSeconds": str(WATCH_SECONDS)}  # fmt: skip
        response = self._get(kind, selector, query, read=WATCH_SECONDS + 30)
        try:
            for line in _lines(response):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    if event["object"].get("code") == 410:
                        raise Expired
                    raise Unavailable(str(event["object"].get("message")), "")
                yield event["type"], prune(kind, event["object"])
        except (urllib3.exceptions.HTTPError, OSError, json.JSONDecodeError) as error:
            raise Unavailable(f"the watch of {kind}s ended early: {error}", "") from None
        finally:
            response.close()

    def end(self, job: Object, annotations: Mapping[str, str]) -> bool:
        """Let a Job fail: set its activeDeadlineSeconds to 1. Do nothing if the Job has changed or is gone.

        Args:
            job: the Job, as it was read last.
            annotations: annotations to add to it.

        Returns:
            Whether the Job was changed.

        Raises:
            Unavailable: the server does not respond or refuses.
        """
        name, version = job["metadata"]["name"], job["metadata"]["resourceVersion"]
        metadata = {"resourceVersion": version, "annotations": dict(annotations)}
        response = self._request(
            "PATCH",
            f"{PATHS['Job'].format(self.namespace)}/{name}",
            read=10,
            body=json.dumps({"metadata": metadata, "spec": {"activeDeadlineSeconds": 1}}).encode(),
            headers={"Content-Type": "application/merge-patch+json"},
        )
        with response:
            if response.status in (404, 409):
                return False
            if response.status != 200:
                raise Unavailable(
                    f"the API server refused to end the Job {name} ({response.status}): {_text(response)}",
                    "The service account needs patch on jobs.",
                )
        return True

    def _get(
        self, kind: ObjectKind, selector: str, query: Mapping[str, str], read: float = 30
    ) -> urllib3.BaseHTTPResponse:
        query = {"labelSelector": selector, "fieldSelector": FIELDS[kind], **query}
        fields = {name: value for name, value in query.items() if value}
        response = self._request("GET", PATHS[kind].format(self.namespace), read, fields=fields)
        if response.status == 410:
            response.close()
            raise Expired
        if response.status != 200:
            with response:
                raise Unavailable(
                    f"the API server refused to list {kind}s ({response.status}): {_text(response)}",
                    "The service account needs get, list and watch on jobs, pods and events.",
                )
        return response

    def _request(
        self, method: str, path: str, read: float = 30, headers: Mapping[str, str] | None = None, **content: Any
    ) -> urllib3.BaseHTTPResponse:
        """Send a request. Return the response before its content is read.

        Raises:
            Unavailable: the server does not respond.
        """
        token = _read(self.account / "token")
        try:
            return self._pool.request(
                method,
                self.url + path,
                headers={**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})},
                timeout=urllib3.Timeout(connect=10, read=read),
                preload_content=False,
                **content,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unavailable(
                f"the API server does not respond: {error}", "Check whether a NetworkPolicy forbids the connection."
            ) from None


def follow(
    server: Server,
    kind: ObjectKind,
    selector: str,
    on_change: Callable[[Change], None],
    log: Callable[[str], None],
    health: Health | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Pass on the list of objects and then every change, forever. Run it in its own thread.

    Args:
        server: the API server.
        kind: the kind of the objects.
        selector: a selector of their labels.
        on_change: receives each change.
        log: receives the message of each error, before the next attempt.
        health: is told whether the list can be read.
        pause: waits for a number of seconds.
    """
    backoff = Backoff()
    version = ""
    while True:
        try:
            if not version:
                objects, version = server.list(kind, selector)
                on_change(Change(kind, "LIST", objects))
                if health:
                    health.works(kind)
            started, events = time.monotonic(), 0
            for event, obj in server.watch(kind, selector, version):
                events, version = events + 1, obj["metadata"]["resourceVersion"]
                if event != "BOOKMARK":
                    on_change(Change(kind, "DELETED" if event == "DELETED" else "SET", (obj,)))
            if events or time.monotonic() - started >= SHORT_WATCH:
                continue
            log(f"the watch of {kind}s ended immediately")
        except Expired:
            version = ""
        except Unavailable as error:
            log(error.message)
            if health:
                health.fails(kind, f"{kind}: {error.message}")
            version = ""
        pause(backoff.next())


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Yield complete lines, however the server splits them into chunks. A line without an end is left out."""
    incomplete = b""
    for chunk in response.stream(amt=None):
        *lines, incomplete = (incomplete + chunk).split(b"\n")
        yield from filter(None, lines)


def _own_cluster() -> str:
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise SettingsError(
            "not running in a pod of a cluster", "Set --server to the API server, such as http://127.0.0.1:8001."
        )
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _text(response: urllib3.BaseHTTPResponse) -> str:
    """Return the message of a refusal."""
    try:
        text = response.read(2000).decode(errors="replace")
    except (urllib3.exceptions.HTTPError, OSError) as error:
        return str(error)
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text[:200]
