"""Connections that take memory, time or places before they are authenticated."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from hubs import POOL, TOKEN, HubProcess, RunningHub
from synthetic import measured

from bench.hub.web import protocol
from bench.model.result import Result

pytestmark = [pytest.mark.once, pytest.mark.essential]

MEGABYTE = 10**6
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


def connect(url: str) -> socket.socket:
    parts = urlsplit(url)
    connection = socket.create_connection((parts.hostname, parts.port))
    connection.settimeout(60)
    return connection


def upload(length: int) -> bytes:
    """Return the head of a request whose body has this length."""
    lines = ["PUT /api/v1/results/1 HTTP/1.1", "Host: x", f"Authorization: Bearer {TOKEN}"]
    lines += ["Content-Type: application/json", f"Content-Length: {length}", "", ""]
    return "\r\n".join(lines).encode()


def is_closed(connection: socket.socket) -> bool:
    """Wait until the other side has closed a connection, and return True; False after a minute."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


def send_until_blocked(connection: socket.socket, data: bytes, limit: int) -> int:
    """Send data again and again, until the other side takes no more. Return the number of bytes."""
    connection.settimeout(2)
    sent = 0
    try:
        while sent < limit:
            connection.sendall(data)
            sent += len(data)
    except (ConnectionError, TimeoutError):
        pass
    return sent


def receive_all(connection: socket.socket) -> bytes:
    """Return everything that the other side sends until it closes the connection."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def is_open_in_this_process(client_port: int) -> bool:
    """Return whether a hub in this process holds the connection of a client with this port."""
    connections = psutil.Process().net_connections("tcp4")
    return any(client_port in connection.raddr[1:] for connection in connections)


def large_result(megabytes: int) -> Result:
    """Return a result of this size, nearly all of it in its sample."""
    result: Result = measured("large", [0.1])
    result.samples[0].notes = [f"{number:04d}" * 2000 for number in range(125 * megabytes)]
    return result


@pytest.fixture
def process(tmp_path: Path) -> Iterator[HubProcess]:
    hub = HubProcess(str(tmp_path / "hub.db"))
    yield hub
    hub.kill()


def memory(process: HubProcess) -> int:
    size: int = psutil.Process(process.process.pid).memory_info().rss
    return size


@pytest.mark.parametrize("line", [b"X-A: " + b"a" * 8000 + b"\r\n", b"a: b\r\n" * 1000, b"x" * 8000])
def test_an_endless_head_is_refused(process: HubProcess, line: bytes) -> None:
    before = memory(process)
    with connect(process.url) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        assert send_until_blocked(connection, line, 64 * MEGABYTE) < 32 * MEGABYTE
    assert memory(process) - before < 30 * MEGABYTE
    assert POOL.request("GET", f"{process.url}/healthz").status == 200


def test_a_head_with_too_many_headers_gets_status_400(process: HubProcess) -> None:
    with connect(process.url) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 5000)
        assert connection.recv(65536).startswith(b"HTTP/1.1 400 ")


def test_pipelined_requests_whose_answers_are_not_read_take_no_memory(process: HubProcess) -> None:
    before = memory(process)
    with ExitStack() as stack:
        for _ in range(4):
            send_until_blocked(stack.enter_context(connect(process.url)), REQUEST * 2000, 20 * MEGABYTE)
        assert memory(process) - before < 50 * MEGABYTE
        assert POOL.request("GET", f"{process.url}/healthz").status == 200


def test_pipelined_requests_are_answered_in_order(process: HubProcess) -> None:
    with connect(process.url) as connection:
        connection.sendall(REQUEST * 3 + b"GET /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answers = receive_all(connection)
    assert [answer[:3] for answer in answers.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"200", b"404"]


def test_connections_without_a_request_give_way_to_new_ones(process: HubProcess) -> None:
    with ExitStack() as stack:
        waiting = [stack.enter_context(connect(process.url)) for _ in range(protocol.CONNECTIONS)]
        for connection in waiting:
            connection.sendall(b"GET / HTTP/1.1\r\nHost")
        for _ in range(100):
            with connect(process.url) as connection:
                connection.sendall(REQUEST)
                assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        assert is_closed(waiting[0])


def test_a_head_must_arrive_within_its_time(hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.1)
    for start in (b"", b"GET / HTTP/1.1\r\nHost: x\r\n", REQUEST + REQUEST[:20]):
        with connect(hub.url) as connection:
            connection.sendall(start)
            assert is_closed(connection)


def test_a_rejected_body_must_arrive_within_the_time_of_a_head(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.1)
    with connect(hub.url) as connection:
        connection.sendall(b"PUT /api/v1/results/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{")
        assert connection.recv(65536).startswith(b"HTTP/1.1 401 ")
        assert is_closed(connection)


def test_bodies_that_do_not_arrive_give_way_to_new_connections(process: HubProcess) -> None:
    with ExitStack() as stack:
        waiting = [stack.enter_context(connect(process.url)) for _ in range(protocol.CONNECTIONS)]
        for connection in waiting:
            connection.sendall(upload(1000) + b"{")
        time.sleep(2 * protocol.STALLED_SECONDS)
        for _ in range(20):
            with connect(process.url) as connection:
                connection.sendall(REQUEST)
                assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        assert is_closed(waiting[0])


def test_what_is_no_http_after_an_answer_only_ends_the_connection(process: HubProcess) -> None:
    with connect(process.url) as connection:
        connection.sendall(b"PUT /api/v1/results/1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 401 ")
        connection.sendall(b"no size of a chunk\r\n")
        assert is_closed(connection)
    assert POOL.request("GET", f"{process.url}/healthz").status == 200
    assert not any("Traceback" in line or "Fatal" in line for line in process.log)


def test_a_client_that_does_not_read_its_answer_is_disconnected(
    serve: Callable[..., RunningHub], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = serve()
    result = large_result(10)
    hub.send(result)
    monkeypatch.setattr(protocol, "WRITE_SECONDS", 0.1)
    with connect(hub.url) as connection:
        connection.sendall(REQUEST.replace(b"/healthz", b"/api/v1/results/large"))
        assert connection.recv(1)
        while is_open_in_this_process(connection.getsockname()[1]):
            pass
        assert len(receive_all(connection)) < len(result.model_dump_json())
