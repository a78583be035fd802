"""Fetches a published data set into Keras' cache: short connect time-out, checksum first, file second.

Only the sets in `bench.datasets.files.SETS` are fetched, and only what has the checksum that Keras holds for them gets
its name; a mirror (`DEVBENCH_DATA_URL`) changes where it comes from and nothing else.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import socket
import tempfile
import threading
import urllib.error
import urllib.request
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from bench.datasets.files import DataSet
from bench.errors import DataError

CONNECT_SECONDS = 3.0
READ_SECONDS = 30.0


def download(dataset: DataSet, folder: Path) -> Path:
    """Downloads the set into `folder` under Keras' own name for it; the file appears whole or not at all.

    Raises:
        DataError: no connection within 3 s, silence for 30 s, another checksum, or a folder that can't be written.
    """
    target = folder / dataset.saved_as
    base = os.environ.get("DEVBENCH_DATA_URL")
    url = f"{base.rstrip('/')}/{PurePosixPath(urlsplit(dataset.url).path).name}" if base else dataset.url
    fix = (
        f"Fetch {dataset.url} elsewhere and put it into {folder} as {dataset.saved_as}, or name its folder with "
        "--data-dir, set DEVBENCH_DATA_URL to a mirror, or use --data sample."
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{dataset.saved_as}.", dir=folder)
    except OSError as error:
        raise DataError(
            f"{dataset.name} can't be kept in {folder}: {error.strerror or error}",
            "Set KERAS_HOME to a folder that can be written, or use --data sample.",
        ) from error
    try:
        with os.fdopen(handle, "wb") as file:
            found = _fetch(url, file)
        if found != dataset.sha256:
            raise DataError(f"{url} is not the published {dataset.name}: its sha256 is {found}", fix)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(target)
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        # An HTTPError says its number itself; any other URLError only wraps what happened.
        reason = error.reason if type(error) is urllib.error.URLError else error
        raise DataError(f"{dataset.name} can't be downloaded from {url}: {reason}", fix) from error
    finally:
        Path(temporary).unlink(missing_ok=True)
    return target


def _fetch(url: str, file: Any) -> str:
    """Copies what `url` answers into `file`; returns its sha256."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError("only http and https are fetched")
    digest = hashlib.sha256()
    with urllib.request.build_opener(_Http, _Https).open(url, timeout=CONNECT_SECONDS) as answer:
        while chunk := answer.read(1 << 20):
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


def _resolve(host: str, port: int) -> None:
    """Looks a host's name up within the connect time-out, which `socket` itself does not hold a resolver to."""
    failure: list[OSError] = []

    def look_up() -> None:
        try:
            socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            failure.append(error)

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(CONNECT_SECONDS)
    if thread.is_alive():
        raise TimeoutError(f"the name {host} was not found within {CONNECT_SECONDS:.0f} s")
    if failure:
        raise failure[0]


class _HttpConnection(http.client.HTTPConnection):
    """Gives up soon where nobody answers, and is patient with a slow line."""

    def connect(self) -> None:
        _resolve(self.host, self.port)
        super().connect()
        self.sock.settimeout(READ_SECONDS)


class _HttpsConnection(http.client.HTTPSConnection):
    """The same over TLS."""

    def connect(self) -> None:
        _resolve(self.host, self.port)
        super().connect()
        self.sock.settimeout(READ_SECONDS)


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_HttpConnection, req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_HttpsConnection, req)
