"""The rendezvous: the first worker starts the other workers, or waits for them, and checks that they fit together.

The others run on this machine, as processes that the first worker starts, or on other hosts, and then connect to it
(`bench.session.cluster_agent`).
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bench.machine import system
from bench.model.failure import Failure
from bench.worker.failure import ClusterError
from bench.worker.protocol import ClusterRun
from bench.worker.rendezvous.messages import Hello, received
from bench.worker.rendezvous.ports import keep_alive, listen

LONGEST_HELLO = 10.0
"""Seconds in which a host that connects must say which worker it has."""

RESOLVE_SECONDS = 60.0
"""Seconds in which the names of all hosts must resolve once all workers have arrived."""


@dataclass(frozen=True)
class Arrival:
    """A worker that has arrived and waits for its order.

    Args:
        hello: its first message.
        connection: the connection to it.
        process: its process. None if it runs on another host.
    """

    hello: Hello
    connection: socket.socket
    process: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        """End the connection, which ends the worker."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()


def arrivals(run: ClusterRun, count: int) -> list[Arrival]:
    """Start the other workers, or wait for them, until all have arrived.

    Args:
        run: how the workers meet.
        count: number of workers, including the first.

    Returns:
        The other workers, by rising index.

    Raises:
        ClusterError: a worker does not arrive, or does not fit the others.
    """
    if not run.hosts:
        return [*_started(count)]
    arrived = _arriving(run, count)
    own = Hello.of_this_host(0).versions
    for each in arrived:
        for package, version in each.hello.versions.items():
            if version != own[package]:
                _close(arrived)
                raise _error(
                    f"worker {each.hello.index} has {package} {version}, worker 0 has {own[package]}",
                    "All workers need the same version. Use one image for all.",
                )
    return arrived


def _started(count: int) -> Iterator[Arrival]:
    """Start the other workers on this machine, and yield each."""
    for index in range(1, count):
        own, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                system.python("bench.worker.peer"), stdin=theirs.fileno(), stdout=theirs.fileno()
            )
        yield Arrival(Hello.of_this_host(index), own, process)


def _arriving(run: ClusterRun, count: int) -> list[Arrival]:
    """Wait for the other workers, which connect from other hosts.

    A pod of Kubernetes has no address, and its name does not resolve, until it has a node.
    """
    if "KUBERNETES_SERVICE_HOST" not in os.environ:
        _resolve_all(run, 0.0)
    arrived: dict[int, Arrival] = {}
    left: set[int] = set()
    deadline = time.monotonic() + run.wait_seconds
    with _listener(run.port) as listener:
        while len(arrived) < count - 1:
            seconds = deadline - time.monotonic()
            sources = [listener, *(each.connection for each in arrived.values())]
            ready = select.select(sources, [], [], max(0.0, seconds))[0]
            if seconds <= 0 or not ready:
                _close(arrived.values())
                raise _never_came(set(range(1, count)) - arrived.keys(), left, run)
            for index in [index for index, each in arrived.items() if each.connection in ready]:
                arrived.pop(index).close()  # a worker that waits sends nothing, so it is gone; it may come again
                left.add(index)
            if listener in ready and (new := _arrival(listener, count)) is not None:
                if (index := new.hello.index) in arrived:  # it lost its connection and connects again
                    arrived[index].close()
                arrived[index] = new
    try:
        _resolve_all(run, RESOLVE_SECONDS)
    except ClusterError:
        _close(arrived.values())
        raise
    return [arrived[index] for index in sorted(arrived)]


def _arrival(listener: socket.socket, count: int) -> Arrival | None:
    """Accept a connection. Return the worker that connected, or None if it is none of the `count` workers."""
    connection, _ = listener.accept()
    connection.settimeout(LONGEST_HELLO)
    hello = next(received(connection), None)
    if not isinstance(hello, Hello) or not 0 < hello.index < count:
        connection.close()
        return None
    connection.settimeout(None)
    keep_alive(connection)
    return Arrival(hello, connection)


def _close(arrived: Iterable[Arrival]) -> None:
    for each in arrived:
        each.close()


def _listener(port: int) -> socket.socket:
    try:
        return listen(port)
    except OSError as error:
        raise _error(
            f"worker 0 cannot listen on port {port}: {error.strerror}",
            "Another program uses the port. Choose a free one with --port, on every host.",
        ) from None


def _resolve_all(run: ClusterRun, seconds: float) -> None:
    """Check that the names of all hosts resolve within some seconds.

    Raises:
        ClusterError: one does not.
    """
    deadline = time.monotonic() + seconds
    for index, host in enumerate(run.hosts):
        while (problem := _unresolved(host)) is not None:
            if time.monotonic() >= deadline:
                raise _error(
                    f"the host of worker {index}, {host}, does not resolve: {problem}",
                    "Check --hosts. In Kubernetes, the Service must publish addresses that are not ready.",
                )
            time.sleep(1.0)


def _unresolved(host: str) -> str | None:
    """Return why the name of a host does not resolve. None if it does."""
    try:
        socket.getaddrinfo(host, None)
    except OSError as error:
        return error.strerror or str(error)
    return None


def _never_came(missing: set[int], left: set[int], run: ClusterRun) -> ClusterError:
    """Return the error about workers that are not there in time.

    Args:
        missing: their indexes.
        left: indexes of those that came, but did not stay.
        run: how the workers meet.
    """
    indexes = missing - left or missing
    names = " and ".join(f"worker {index} ({run.hosts[index]})" for index in sorted(indexes))
    if indexes <= left:
        return _error(
            f"{names} came, but left before all workers were there",
            "Its output says why. Start the same command on each host again.",
        )
    minutes = f"{run.wait_seconds / 60:.0f} min" if run.wait_seconds >= 120 else f"{run.wait_seconds:.3g} s"
    unknown = [run.hosts[index] for index in sorted(indexes) if _unresolved(run.hosts[index]) is not None]
    why = f": no address for {' and '.join(unknown)}, as if no node had room for the pod" if unknown else ""
    return _error(
        f"{names} never came within {minutes}{why}",
        "Check that the same command runs on each host, with its own --index, and that each host reaches the first. In "
        "Kubernetes, `kubectl describe pod` says why a pod does not start. To wait longer, use --rendezvous-timeout.",
    )


def _error(message: str, hint: str) -> ClusterError:
    return ClusterError(Failure(kind="rendezvous", message=message, hint=hint))
