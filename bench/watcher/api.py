"""The API server, as much of it as is needed: a list of objects, and then each change of them, for ever.

The rules are those of Kubernetes' own clients: a watch goes on from the last version seen, a list is made again when
that is too old (410), and the token is read anew for each request, since it changes every hour.
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

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
PAGE = 500
"""Objects in one answer."""

WATCH_SECONDS = 300
"""After so long the server ends a watch, and the next goes on where it ended."""

ALIVE = [
    *HTTPConnection.default_socket_options,
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
]
"""Notices within half a minute that the other end of a watch is gone."""

Kind = Literal["Job", "Pod", "Event"]
PATHS: dict[Kind, str] = {"Job": "/apis/batch/v1/namespaces/{}/jobs", "Pod": "/api/v1/namespaces/{}/pods",
                          "Event": "/api/v1/namespaces/{}/events"}  # fmt: skip
Object = dict[str, Any]


class Gone(Exception):
    """The version that a watch was to go on from is no longer kept."""


@dataclass(frozen=True)
class Change:
    """What became of objects of one kind.

    Attributes:
        kind: of the objects.
        what: "ALL" for a new list in place of everything known, "DELETED", or "SET" for added and modified ones.
        objects: all of them, or the one that changed.
    """

    kind: Kind
    what: Literal["ALL", "SET", "DELETED"]
    objects: tuple[Object, ...]


class Server:
    """The API server of the cluster that this runs in, or one that is named.

    Args:
        namespace: whose objects are read; without it the pod's own.
        url: address; without it the cluster's own.
        account: folder with `token`, `ca.crt` and `namespace`, as a pod has it.

    Raises:
        SettingsError: no cluster is here and none was named.
    """

    def __init__(self, namespace: str | None = None, url: str | None = None, account: Path = ACCOUNT) -> None:
        self.account = account
        self.url = (url or _own()).rstrip("/")
        self.namespace = namespace or _text(account / "namespace") or "default"
        authority = account / "ca.crt"
        context = ssl.create_default_context(cafile=str(authority) if authority.exists() else None)
        # Certificates of some clusters lack what RFC 5280 asks for, and Python 3.13 insists on; Kubernetes' own don't.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        self._pool = urllib3.PoolManager(
            maxsize=4, block=False, ssl_context=context, retries=False, socket_options=ALIVE
        )

    def all(self, kind: Kind, selector: str) -> tuple[tuple[Object, ...], str]:
        """All objects of a kind, and the version of the list.

        Raises:
            Unreachable: the server did not answer, or refused.
        """
        found: list[Object] = []
        following = ""
        while True:
            answer = self._get(kind, {"labelSelector": selector, "limit": str(PAGE), "continue": following})
            try:
                with answer:
                    body = json.loads(answer.read())
            except (urllib3.exceptions.HTTPError, OSError, json.JSONDecodeError) as error:
                raise Unreachable(f"the list of {kind}s was cut off: {error}", "") from None
            found += body.get("items") or []
            following = body["metadata"].get("continue", "")
            if not following:
                return tuple(found), body["metadata"]["resourceVersion"]

    def watch(self, kind: Kind, selector: str, version: str) -> Iterator[tuple[str, Object]]:
        """Changes since a version, as they come; ends when the server ends it.

        Raises:
            Gone: the version is too old.
            Unreachable: the server did not answer, or refused.
        """
        asked = {"labelSelector": selector, "watch": "1", "allowWatchBookmarks": "true", "resourceVersion": version,
                 "timeoutSeconds": str(WATCH_SECONDS)}  # fmt: skip
        answer = self._get(kind, asked, read=WATCH_SECONDS + 30)
        try:
            for line in _lines(answer):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    if event["object"].get("code") == 410:
                        raise Gone
                    raise Unreachable(str(event["object"].get("message")), "")
                yield event["type"], event["object"]
        except (urllib3.exceptions.HTTPError, OSError, json.JSONDecodeError) as error:
            raise Unreachable(f"the watch of {kind}s was cut off: {error}", "") from None
        finally:
            answer.close()

    def _get(self, kind: Kind, asked: Mapping[str, str], read: float = 30) -> urllib3.BaseHTTPResponse:
        token = _text(self.account / "token")
        try:
            answer = self._pool.request(
                "GET",
                self.url + PATHS[kind].format(self.namespace),
                fields={name: value for name, value in asked.items() if value},
                headers={"Authorization": f"Bearer {token}"} if token else {},
                timeout=urllib3.Timeout(connect=10, read=read),
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unreachable(f"the API server does not answer: {error}", "A NetworkPolicy may forbid it.") from None
        if answer.status == 410:
            answer.close()
            raise Gone
        if answer.status != 200:
            with answer:
                text = answer.read(2000).decode(errors="replace")
            raise Unreachable(
                f"the API server refused to list {kind}s ({answer.status}): {_message(text)}",
                "Its service account needs get, list and watch on jobs, pods and events.",
            )
        return answer


class Unreachable(DevbenchError):
    """The API server does not answer, or refuses."""


def follow(
    server: Server, kind: Kind, selector: str, tell: Callable[[Change], None], failed: Callable[[str], None]
) -> None:
    """Tells a list and then every change of it, for ever; meant for a thread of its own.

    Args:
        server: where to ask.
        kind: of objects.
        selector: of their labels.
        tell: called with each change.
        failed: called with what went wrong, before it is tried again.
    """
    pause = 1.0
    version = ""
    while True:
        try:
            if not version:
                objects, version = server.all(kind, selector)
                tell(Change(kind, "ALL", objects))
            for what, found in server.watch(kind, selector, version):
                pause, version = 1.0, found["metadata"]["resourceVersion"]
                if what != "BOOKMARK":
                    tell(Change(kind, "DELETED" if what == "DELETED" else "SET", (found,)))
        except Gone:
            version = ""
        except Unreachable as error:
            failed(error.message)
            version = ""
            time.sleep(pause)
            pause = min(2 * pause, 10.0)


def _lines(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Lines as they come, however the server cuts them into pieces."""
    rest = b""
    for piece in answer.stream(amt=None):
        *whole, rest = (rest + piece).split(b"\n")
        yield from filter(None, whole)


def _own() -> str:
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise SettingsError("this is no pod of a cluster", "Name the API server: --server http://127.0.0.1:8001")
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text[:200]
