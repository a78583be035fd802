"""Answers that their clients read slowly or not at all: memory, time, and the places that they take from others."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest
from hubs import HubProcess, RunningHub
from starlette.types import Receive, Scope, Send
from test_hub_connections import (
    MEGABYTE,
    REQUEST,
    connect,
    is_closed,
    large_result,
    memory,
    process,
    receive_all,
    send_until_blocked,
)
from uvicorn.server import ServerState

from bench.hub.db.database import Database
from bench.hub.web import protocol
from bench.hub.web.protocol import Protocol
from bench.hub.web.serve import uvicorn_config

__all__ = ["process"]  # a fixture

pytestmark = [pytest.mark.once, pytest.mark.essential]

GET_LARGE = REQUEST.replace(b"/healthz", b"/api/v1/results/large")


def begin_answer(url: str) -> socket.socket:
    """Ask for the large result, and read only the first byte of the answer."""
    connection = connect(url)
    connection.sendall(GET_LARGE)
    assert connection.recv(1)
    return connection


def status(url: str, request: bytes) -> bytes:
    with connect(url) as connection:
        connection.sendall(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        return receive_all(connection).split(b" ", 2)[1]


def test_large_answers_that_are_not_read_take_little_memory(process: HubProcess, tmp_path: Path) -> None:
    database = Database(str(tmp_path / "hub.db"))
    RunningHub(process.url, database).send(large_result(15))
    assert status(process.url, GET_LARGE) == b"200"
    before = memory(process)
    with ExitStack() as stack:
        for _ in range(30):
            stack.enter_context(begin_answer(process.url))
        assert memory(process) - before < 150 * MEGABYTE
        assert status(process.url, REQUEST) == b"200"
    database.close()


def test_large_answers_that_make_no_progress_give_way_to_others(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.send(large_result(2))
    monkeypatch.setattr(protocol, "HELD_BYTES", 3 * MEGABYTE)
    monkeypatch.setattr(protocol, "STALLED_SECONDS", 1e9)
    with begin_answer(hub.url) as stalled:
        refused = hub.request("GET", "/api/v1/results/large")
        assert (refused.status, refused.json()["type"]) == (503, "urn:devbench:problem:busy")
        assert refused.headers["Retry-After"]
        assert refused.headers["X-Content-Type-Options"] == "nosniff"
        assert hub.request("HEAD", "/api/v1/results/large").status == 200
        assert hub.request("GET", "/healthz").status == 200
        monkeypatch.setattr(protocol, "STALLED_SECONDS", 0)
        assert hub.get("/api/v1/results/large")["id"] == "large"
        assert is_closed(stalled)
    assert hub.get("/api/v1/results/large")["id"] == "large"


def test_an_answer_that_is_larger_than_the_limit_is_sent_alone(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = large_result(2)
    hub.send(result)
    monkeypatch.setattr(protocol, "HELD_BYTES", MEGABYTE)
    for _ in range(3):
        assert hub.request("GET", "/api/v1/results/large").data == result.model_dump_json().encode()


@pytest.mark.parametrize("request_", [GET_LARGE, REQUEST * 5000], ids=["large", "pipelined"])
def test_connections_whose_clients_read_nothing_give_way_to_new_ones(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch, request_: bytes
) -> None:
    hub.send(large_result(3))
    monkeypatch.setattr(protocol, "CONNECTIONS", 8)
    with ExitStack() as stack:
        for _ in range(protocol.CONNECTIONS):
            send_until_blocked(stack.enter_context(connect(hub.url)), request_, 20 * MEGABYTE)
        for _ in range(20):
            assert status(hub.url, REQUEST) == b"200"


def test_a_client_that_reads_slowly_gets_the_whole_answer(
    serve: Callable[..., RunningHub], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = serve()
    result = large_result(12)  # more than the buffers of the systems
    hub.send(result)
    monkeypatch.setattr(protocol, "WRITE_SECONDS", 1.0)
    received = 0
    with begin_answer(hub.url) as connection:
        while part := connection.recv(200_000):
            received += len(part)
            time.sleep(0.05)
    assert received > len(result.model_dump_json())


class Clock:
    """A loop with a clock that a test sets, and with one timer."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timer: tuple[float, Callable[[], None]] | None = None

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, function: Callable[[], None]) -> Clock:
        self.timer = (when, function)
        return self

    def cancel(self) -> None:
        self.timer = None

    def advance(self, seconds: float) -> None:
        until = self.now + seconds
        while self.timer is not None and self.timer[0] <= until:
            self.now, function = self.timer
            self.timer = None
            function()
        self.now = until


class Transport:
    """A transport with a buffer whose size a test sets."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.unsent = 0
        self.aborted = False

    def get_extra_info(self, name: str) -> Any:
        return {"socket": self.connection}.get(name)

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.aborted = True


@pytest.fixture
def paused() -> Iterator[tuple[Clock, Transport, Protocol]]:
    """A connection whose client takes the parts of an answer slowly."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise NotImplementedError

    with socket.socket() as unconnected:
        clock, transport = Clock(), Transport(unconnected)
        connection = Protocol(uvicorn_config(cast("Any", app)), ServerState(), {}, _loop=clock)
        connection.connection_made(cast("asyncio.Transport", transport))
        transport.unsent = 90_000
        connection.pause_writing()
        yield clock, transport, connection


def test_each_part_that_a_client_takes_renews_its_time(paused: tuple[Clock, Transport, Protocol]) -> None:
    clock, transport, _ = paused
    for _ in range(8):
        clock.advance(protocol.WRITE_SECONDS - 1)
        transport.unsent -= 10_000
        assert not transport.aborted
    clock.advance(protocol.WRITE_SECONDS - 1)
    assert not transport.aborted
    clock.advance(2 * protocol.WRITE_SECONDS)
    assert transport.aborted


def test_the_rest_of_an_answer_has_the_time_of_an_answer_not_of_a_head(
    paused: tuple[Clock, Transport, Protocol],
) -> None:
    clock, transport, connection = paused
    transport.unsent = 10_000
    connection.resume_writing()
    clock.advance(protocol.WRITE_SECONDS - 1)
    transport.unsent = 0
    clock.advance(protocol.HEAD_SECONDS)
    assert not transport.aborted
    clock.advance(protocol.HEAD_SECONDS)
    assert transport.aborted
