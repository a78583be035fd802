"""Downloads a published data set into Keras' cache.

Only the sets in `bench.datasets.files.SETS` can be downloaded. A download gets its final name only if it has the
checksum that Keras expects, even if it comes from a mirror (`DEVBENCH_DATA_URL`).
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
    """Download a set into `folder` under Keras' name and return its path. The file appears complete or not at all.

    Raises:
        DataError: no connection within 3 s, no data for 30 s, a wrong checksum, or a folder that is not writable.
    """
    target = folder / dataset.saved_as
    base = os.environ.get("DEVBENCH_DATA_URL")
    url = f"{base.rstrip('/')}/{PurePosixPath(urlsplit(dataset.url).path).name}" if base else dataset.url
    fix = (
        f"Download {dataset.url} yourself. Save it as {dataset.saved_as} in {folder} or in the folder of --data-dir. "
        "Or set DEVBENCH_DATA_URL to a mirror, or use --data sample."
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{dataset.saved_as}.", dir=folder)
    except OSError as error:
        raise DataError(
            f"cannot save {dataset.name} in {folder}: {error.strerror or error}",
            "Set KERAS_HOME to a writable folder, or use --data sample.",
        ) from error
    try:
        with os.fdopen(handle, "wb") as file:
            sha256 = _fetch(url, file)
        if sha256 != dataset.sha256:
            raise DataError(f"{url} is not the published {dataset.name}: its sha256 is {sha256}", fix)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(target)
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        # An HTTPError contains its status. Any other URLError only wraps the reason.
        reason = error.reason if type(error) is urllib.error.URLError else error
        raise DataError(f"cannot download {dataset.name} from {url}: {reason}", fix) from error
    finally:
        Path(temporary).unlink(missing_ok=True)
    return target


def _fetch(url: str, file: Any) -> str:
    """Copy the response of `url` into `file` and return its sha256."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError("only http and https URLs are supported")
    digest = hashlib.sha256()
    with urllib.request.build_opener(_Http, _Https).open(url, timeout=CONNECT_SECONDS) as answer:
        while chunk := answer.read(1 << 20):
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


def _resolve(host: str, port: int) -> None:
    """Look up a host within the connection timeout, which `socket` does not apply to the resolver."""
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
        raise TimeoutError(f"could not resolve {host} within {CONNECT_SECONDS:.0f} s")
    if failure:
        raise failure[0]


class _HttpConnection(http.client.HTTPConnection):
    """A connection with a short timeout to connect and a long one to read."""

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
