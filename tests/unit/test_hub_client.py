"""The client of a hub, against servers that answer as a hub, a busy hub, a proxy or another server would."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bench.errors import DevbenchError
from bench.publish.hub.client import Client, connect
from bench.publish.hub.errors import HubBusy, HubRefused, HubUnavailable, NotFromHub, UnknownToken
from bench.publish.hub.token import token
from bench.watcher.health import Health
from bench.watcher.loop import sender
from bench.watcher.run_report import RunReport
from bench.watcher.state import Watcher

pytestmark = pytest.mark.once


PROBLEM = b'{"type": "urn:devbench:problem:not-found", '


class _Recorder(BaseHTTPRequestHandler):
    server: Responder

    def do_GET(self) -> None:
        self.server.requests.append((self.path, self.headers.get("Authorization")))
        status, body = self.server.responses.pop(0) if len(self.server.responses) > 1 else self.server.responses[0]
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if status == 503 and self.server.retry_after:
            self.send_header("Retry-After", self.server.retry_after)
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self) -> None:
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


class Responder(ThreadingHTTPServer):
    """A server that records requests. It gives its responses one after the other, and repeats the last one."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Recorder)
        self.responses: list[tuple[int, bytes]] = [(200, b"{}")]
        self.requests: list[tuple[str, str | None]] = []
        self.retry_after = ""
        self.url = f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Responder]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "DEVBENCH_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with Responder() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_query_goes_below_the_hubs_address_with_the_token_and_returns_the_document(server: Responder) -> None:
    server.responses = [(200, json.dumps({"runs": [1]}).encode())]
    assert Client(server.url + "/bench/", "secret").get("/api/v1/runs?limit=1") == {"runs": [1]}
    assert Client(server.url, None).get("/api/v1/runs") == {"runs": [1]}
    assert server.requests == [("/bench/api/v1/runs?limit=1", "Bearer secret"), ("/api/v1/runs", None)]


@pytest.mark.parametrize(
    ("status", "body", "error", "message", "hint"),
    [
        (503, b"", HubBusy, "cannot answer /x now: it answered 503", ""),
        (429, b'{"detail": "too many requests"}', HubBusy, "cannot answer /x now: too many requests", ""),
        (401, b'{"detail": "no token"}', UnknownToken, "refused /x: no token", "--hub-token-file"),
        (404, PROBLEM + b'"detail": "no such run", "hint": "Look."}', HubRefused, "refused /x: no such run", "Look."),
        (302, b"", NotFromHub, "refused /x: it answered 302", "Is this the address of a hub?"),
        (200, b"<html>", HubRefused, "answered /x without a JSON object", "Is this the address of a hub?"),
    ],
)
def test_an_answer_that_is_no_document_is_an_error_that_says_what_to_do(
    server: Responder, status: int, body: bytes, error: type[DevbenchError], message: str, hint: str
) -> None:
    server.responses = [(status, body)]
    with pytest.raises(error) as caught:
        Client(server.url, None).get("/x")
    assert type(caught.value) is error
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert server.requests == [("/x", None)]


def test_a_query_is_repeated_as_often_as_the_caller_allows(server: Responder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.publish.hub.client.BACKOFF", 0.01)
    server.responses = [(503, b""), (502, b""), (200, b'{"a": 1}')]
    assert Client(server.url, None).get("/x", retries=2) == {"a": 1}


def test_a_busy_hub_is_asked_again_as_often_as_it_wishes(server: Responder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.publish.hub.client.RETRY_AFTER", 0.01)
    monkeypatch.setattr("bench.publish.hub.client.BACKOFF", 1000.0)
    server.retry_after = "7"
    server.responses = [(503, b"")] * 9 + [(200, b'{"a": 1}')]
    assert Client(server.url, None).get("/x", retries=1) == {"a": 1}
    server.responses = [(503, b""), (200, b'{"a": 1}')]
    with pytest.raises(HubBusy):
        Client(server.url, None).get("/x", retries=0)


def test_a_document_may_take_longer_than_the_timeout_of_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.publish.hub.client.CONNECT", 0.5)
    body, received = b"x" * (8 * 2**20), []

    def take_slowly(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            request = b""
            while len(request) < len(body):
                time.sleep(0.02)
                request += connection.recv(128 * 1024)
            received.append(request.count(b"x"))
            document = b'{"id": "a", "outcome": "created"}'
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(document), document))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        reader = threading.Thread(target=take_slowly, args=(listener,))
        reader.start()
        client = Client(f"http://127.0.0.1:{listener.getsockname()[1]}", None)
        assert client.put("results", "a", body, retries=0) == "created"
        reader.join()
    assert received == [len(body)]


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with Responder() as server:
        url = server.url
    with pytest.raises(HubUnavailable, match="cannot reach the hub"):
        Client(url, None).get("/x")


def test_a_token_that_was_rotated_is_read_again_for_a_query(server: Responder, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old\n", encoding="utf-8")
    client = connect(server.url, file)
    file.write_text("new\n", encoding="utf-8")
    server.responses = [(401, b""), (200, b'{"a": 1}')]
    assert client.get("/x") == {"a": 1}
    assert server.requests == [("/x", "Bearer old"), ("/x", "Bearer new")]


def test_a_query_uses_the_proxy_of_the_environment_unless_the_hub_is_excepted(
    server: Responder, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.responses = [(200, b'{"a": 1}')]
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    Client("http://hub.invalid:8080", None).get("/x")
    Client(server.url, None).get("/x")
    assert [path for path, _ in server.requests] == ["http://hub.invalid:8080/x", "/x"]


def test_a_file_with_the_token_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n", encoding="utf-8-sig")
    assert token(tmp_path / "token") == "secret"


def test_a_document_whose_file_name_is_no_text_is_refused_by_the_hub_and_not_by_an_error(server: Responder) -> None:
    server.responses = [(422, b"{}")]
    with pytest.raises(HubRefused):
        Client(server.url, None).put("explanations", "a\udcff", b"{}")
    assert server.requests == [("/api/v1/explanations/a%ED%B3%BF", None)]


@pytest.mark.parametrize(
    ("body", "is_sent_again"),
    [(b"<html>no such page</html>", True), (b'{"type": "urn:devbench:problem:newer-schema"}', False)],
    ids=["a proxy", "a hub"],
)
def test_a_state_that_a_proxy_refuses_is_sent_again_by_the_watcher(
    server: Responder, body: bytes, is_sent_again: bool
) -> None:
    server.responses = [(404, body)]
    watcher, health = Watcher(patience=60), Health()
    watcher.unsent["r"] = RunReport("r", 101, "failed", "OOMKilled", "cifar", "t4", None, datetime.now(timezone.utc))
    with nullcontext() if not is_sent_again else pytest.raises(NotFromHub):
        watcher.send(sender(Client(server.url, None), health))
    assert list(watcher.unsent) == (["r"] if is_sent_again else [])
