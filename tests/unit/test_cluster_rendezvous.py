"""How the first worker meets workers on other hosts, with sockets in place of the others' processes."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.machine import installed
from bench.model.failure import Failure
from bench.model.spec import Data, Spec, Threads, Workers
from bench.session import cluster_agent
from bench.worker import peer
from bench.worker.cluster import arrivals, chief
from bench.worker.cluster.chief import Cluster, gather
from bench.worker.cluster.strategy import DIRECT, connect_directly
from bench.worker.failure import ClusterError
from bench.worker.losses import LOSSES
from bench.worker.protocol import ClusterRun, Start
from bench.worker.rendezvous.messages import TO_PEER, Begin, Hello, Lost, Ping, Pong, Until, line, received
from bench.worker.rendezvous.ports import address, free_port, listen

VERSION = "2.21.0"


OPEN: list[Any] = []
"""What must be closed after a test."""


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


@pytest.fixture(autouse=True)
def version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "tensorflow_version", lambda: VERSION)


def spec(count: int = 2) -> Spec:
    workers = Workers(count=count, strategy="multi-worker")
    return Spec(
        workload="mnist", backend="cpu", loop="step", threads=Threads(intra=1, inter=1), data=Data(kind="own"),
        workers=workers,
    )  # fmt: skip


def start(port: int, hosts: list[str], wait_seconds: float = 5.0) -> Start:
    run = ClusterRun(hosts=hosts, port=port, wait_seconds=wait_seconds)
    return Start(spec=spec(len(hosts)), spawned=0.0, cluster=run)


def arrive(port: int, index: int, **versions: str) -> socket.socket:
    """Connect to the first worker as another one, once it listens."""
    deadline = time.monotonic() + 5
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port))
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    OPEN.append(connection)
    hello = Hello.of_this_host(index).model_copy(update={"port": 4000 + index, **versions})
    connection.sendall(line(hello))
    return connection


def met(hosts: list[str], indexes: list[int], on_lost: Callable[[Failure], None], **options: Any) -> Any:
    """Let workers arrive in an order. Return what `gather` returns, and the connections by index."""
    port = free_port()
    connections: dict[int, socket.socket] = {}

    def arrive_all() -> None:
        for index in indexes:
            connections[index] = arrive(port, index, **options)

    thread = threading.Thread(target=arrive_all)
    thread.start()
    try:
        order = start(port, hosts)
        cluster = gather(order.spec, order, on_lost)
        OPEN.append(cluster)
        return cluster, connections
    finally:
        thread.join()


def first_message(connection: socket.socket) -> Any:
    with connection.makefile("rb") as lines:
        return TO_PEER.validate_json(lines.readline())


LOCAL = ["127.0.0.1"] * 3


def test_each_worker_learns_its_index_and_where_all_of_them_listen() -> None:
    cluster, connections = met(LOCAL, [2, 1], lambda failure: None)
    assert isinstance(cluster, Cluster)
    for index, connection in connections.items():
        begin = first_message(connection)
        assert isinstance(begin, Begin)
        run = begin.start.cluster
        assert run is not None
        assert run.index == index
        assert [address.rpartition(":")[2] for address in run.addresses][1:] == ["4001", "4002"]
        assert run.addresses == cluster.run.addresses


def test_a_worker_that_comes_twice_counts_once() -> None:
    cluster, _ = met(LOCAL, [1, 1, 2], lambda failure: None)
    assert [peer.index for peer in cluster.peers] == [1, 2]


def test_a_stranger_is_turned_away() -> None:
    cluster, _ = met(LOCAL, [7, 1, 2], lambda failure: None)
    assert [peer.index for peer in cluster.peers] == [1, 2]


def failure_of(order: Start) -> Failure:
    with pytest.raises(ClusterError) as error:
        gather(order.spec, order, lambda failure: None)
    return error.value.failure


def test_a_worker_that_never_comes_is_named_with_its_host() -> None:
    failure = failure_of(start(free_port(), ["127.0.0.1", "localhost"], wait_seconds=0.2))
    assert failure.kind == "rendezvous"
    assert failure.message == "worker 1 (localhost) never came within 0.2 s"


def test_a_port_in_use_is_named() -> None:
    with listen(0) as taken:
        port = taken.getsockname()[1]
        failure = failure_of(start(port, ["127.0.0.1", "localhost"]))
    assert failure.message.startswith(f"worker 0 cannot listen on port {port}")
    assert "--port" in failure.hint


def test_a_name_that_does_not_resolve_is_named() -> None:
    failure = failure_of(start(free_port(), ["127.0.0.1", "worker-1.invalid"]))
    assert failure.message.startswith("the host of worker 1, worker-1.invalid, does not resolve")


def test_the_name_of_a_pod_need_not_resolve_before_the_pod_has_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    failure = failure_of(start(free_port(), ["127.0.0.1", "worker-1.invalid"], wait_seconds=0.2))
    assert failure.message == (
        "worker 1 (worker-1.invalid) never came within 0.2 s: no address for worker-1.invalid, as if no node had room "
        "for the pod"
    )
    problems = iter(["Name or service not known"])
    monkeypatch.setattr(arrivals, "_unresolved", lambda host: next(problems, None))
    cluster, _ = met(["127.0.0.1", "worker-1.invalid"], [1], lambda failure: None)
    assert [peer.index for peer in cluster.peers] == [1]


def test_a_port_that_another_program_took_does_not_hide_the_result() -> None:
    with listen(0) as taken:
        cluster_agent.dismiss(taken.getsockname()[1], 1)


@pytest.mark.parametrize("package", ["tensorflow", "keras", "devbench"])
def test_workers_with_two_versions_of_a_package_do_not_begin(package: str) -> None:
    with pytest.raises(ClusterError) as error:
        met(["127.0.0.1"] * 2, [1], lambda failure: None, **{package: "1.0"})
    own = getattr(Hello.of_this_host(0), package)
    name = {"tensorflow": "TensorFlow", "keras": "Keras"}.get(package, package)
    assert error.value.failure.message == f"worker 1 has {name} 1.0, worker 0 has {own}"


def test_an_address_of_ipv6_has_brackets() -> None:
    assert address("fe80::1", 2222) == "[fe80::1]:2222"
    cluster, _ = met(["::1", "127.0.0.1"], [1], lambda failure: None)
    assert cluster.run.addresses[0].startswith("[::1]:")


def test_workers_connect_without_the_proxy_of_downloads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECT, "")
    monkeypatch.setenv("no_proxy", "mirror.local")
    connect_directly(["node-a:2222", "[fe80::1]:4000", "node-a:2223"])
    assert os.environ[DIRECT] == "mirror.local,node-a,fe80::1"


def test_a_worker_that_leaves_before_all_others_are_there_is_waited_for_again() -> None:
    def come_and_go() -> None:
        arrive(port, 1).close()
        arrive(port, 2)
        arrive(port, 1)

    port = free_port()
    order = start(port, LOCAL)
    thread = threading.Thread(target=come_and_go)
    thread.start()
    cluster = gather(order.spec, order, lambda failure: None)
    OPEN.append(cluster)
    thread.join()
    time.sleep(0.2)
    assert [peer.index for peer in cluster.peers] == [1, 2]
    assert [peer.failure for peer in cluster.peers] == [None, None]


def test_a_worker_that_left_is_not_said_never_to_have_come() -> None:
    def come_and_go() -> None:
        arrive(port, 1).close()
        arrive(port, 2)

    port = free_port()
    thread = threading.Thread(target=come_and_go)
    thread.start()
    failure = failure_of(start(port, ["127.0.0.1", "localhost", "127.0.0.1"], wait_seconds=0.5))
    thread.join()
    assert failure.message == "worker 1 (localhost) came, but left before all workers were there"


def lost_within(seconds: float, act: Callable[[socket.socket], None]) -> Failure:
    """Return the failure that is reported after something happens to the connection to worker 1."""
    failures: list[Failure] = []
    noticed = threading.Event()

    def on_lost(failure: Failure) -> None:
        failures.append(failure)
        noticed.set()

    _, connections = met(["127.0.0.1"] * 2, [1], on_lost)
    first_message(connections[1])
    act(connections[1])
    assert noticed.wait(seconds)
    return failures[0]


def test_a_connection_that_ends_is_noticed_at_once() -> None:
    failure = lost_within(2, lambda connection: connection.shutdown(socket.SHUT_RDWR))
    assert failure.kind == "lost-worker"
    assert failure.message == "worker 1 is gone: the connection to it ended"


def test_the_reason_that_a_worker_gives_is_reported() -> None:
    reason = Lost(failure=Failure(kind="memory", message="out of memory"))
    failure = lost_within(2, lambda connection: connection.sendall(line(reason)))
    assert (failure.kind, failure.message) == ("memory", "worker 1: out of memory")


def test_a_worker_describes_its_error_with_the_lines_of_the_program(tmp_path: Path) -> None:
    file = tmp_path / "trains.py"
    file.write_text("def data():\n    raise ValueError('no such column')\n", encoding="utf-8")
    program: dict[str, Any] = {}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), program)
    with pytest.raises(ValueError, match="no such column") as raised:
        program["data"]()
    failure = peer.described(raised.value, str(file))
    assert failure.message.startswith("ValueError: no such column")
    assert any(f'File "{file}", line 2' in text for text in failure.last_lines)
    assert failure.last_lines[-1] == "ValueError: no such column"


def test_a_worker_that_does_not_answer_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chief, "START_SECONDS", 0.0)
    monkeypatch.setattr(chief, "QUIET_SECONDS", 0.05)
    monkeypatch.setattr(chief, "UNANSWERED", 1)
    failure = lost_within(5, lambda connection: None)
    assert failure.message.startswith("worker 1 does not answer")


def test_a_worker_that_answers_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chief, "START_SECONDS", 0.0)
    monkeypatch.setattr(chief, "QUIET_SECONDS", 0.05)
    monkeypatch.setattr(chief, "UNANSWERED", 1)
    failures: list[Failure] = []
    _, connections = met(["127.0.0.1"] * 2, [1], failures.append)
    with connections[1].makefile("rb") as lines:
        lines.readline()
        for _ in range(5):
            assert isinstance(TO_PEER.validate_json(lines.readline()), Ping)
            connections[1].sendall(line(Pong()))
    assert failures == []


def test_a_worker_runs_only_announced_steps_after_the_first_ones() -> None:
    loop = peer.PeerLoop(lambda value: 0.0, lambda: None, lambda: None, announced=True)
    ran: list[int] = []

    def run() -> None:
        for step in range(LOSSES + 5):
            ran.append(step)
            loop.tick(step)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    for announced in (LOSSES, LOSSES + 3, LOSSES + 6):
        loop.announce(announced)
        deadline = time.monotonic() + 5
        while len(ran) < min(announced, LOSSES + 5) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.05)
        assert len(ran) == min(announced, LOSSES + 5)
    thread.join(5)
    assert not thread.is_alive()


def test_steps_are_announced_to_all_workers_once() -> None:
    cluster, connections = met(LOCAL, [1, 2], lambda failure: None)
    for steps in (LOSSES, LOSSES + 4, LOSSES + 2, LOSSES + 9):
        cluster.announce(steps)
    for connection in connections.values():
        with connection.makefile("rb") as lines:
            messages = [TO_PEER.validate_json(lines.readline()) for _ in range(3)]
        assert [message.steps for message in messages if isinstance(message, Until)] == [LOSSES + 4, LOSSES + 9]


def test_a_host_that_cannot_prepare_the_program_says_why() -> None:
    def localize(start: Start, folder: Path) -> Start:
        raise OSError(28, "No space left on device", "train.py")

    ours, theirs = socket.socketpair()
    OPEN.append(ours)
    told: list[str] = []
    failed = threading.Event()
    cluster_agent._run(theirs, start(0, ["127.0.0.1"] * 2), localize, told.append, failed)
    (message,) = received(ours)
    assert isinstance(message, Lost)
    assert (message.failure.kind, failed.is_set()) == ("rendezvous", True)
    assert "No space left on device: 'train.py'" in message.failure.message
    assert "No space left on device" in told[0]
