"""The rendezvous: the first worker starts the other workers, or waits for them, and checks that they fit together.

The others run on this machine, as processes that the first worker starts, or on other hosts, and then connect to it
(`bench.session.cluster_agent`).
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bench.machine import installed, system
from bench.model.failure import Failure
from bench.worker.failure import ClusterError
from bench.worker.protocol import ClusterRun
from bench.worker.rendezvous.messages import Hello, received
from bench.worker.rendezvous.ports import free_port, keep_alive, listen

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
    own = installed.tensorflow_version()
    arrived = [*(_arriving(run, count) if run.hosts else _started(count, own))]
    for each in arrived:
        if each.hello.tensorflow != own:
            _close(arrived)
            raise _error(
                f"worker {each.hello.index} has TensorFlow {each.hello.tensorflow}, worker 0 has {own}",
                "All workers need the same version. Use one image for all.",
            )
    return arrived


def _started(count: int, tensorflow: str) -> Iterator[Arrival]:
    """Start the other workers on this machine, and yield each."""
    for index in range(1, count):
        own, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                system.python("bench.worker.peer"), stdin=theirs.fileno(), stdout=theirs.fileno()
            )
        yield Arrival(Hello(index=index, port=free_port(), tensorflow=tensorflow), own, process)


def _arriving(run: ClusterRun, count: int) -> list[Arrival]:
    """Wait for the other workers, which connect from other hosts.

    A pod of Kubernetes has no address, and its name does not resolve, until it has a node.
    """
    if "KUBERNETES_SERVICE_HOST" not in os.environ:
        _resolve_all(run, 0.0)
    arrived: dict[int, Arrival] = {}
    deadline = time.monotonic() + run.wait_seconds
    with _listener(run.port) as listener:
        while len(arrived) < count - 1:
            listener.settimeout(max(0.0, deadline - time.monotonic()) or 0.001)
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                _close(arrived.values())
                raise _never_came(set(range(1, count)) - arrived.keys(), run) from None
            connection.settimeout(LONGEST_HELLO)
            hello = next(received(connection), None)
            if not isinstance(hello, Hello) or not 0 < hello.index < count:
                connection.close()
                continue
            connection.settimeout(None)
            keep_alive(connection)
            if hello.index in arrived:  # it lost its connection and connects again
                arrived[hello.index].close()
            arrived[hello.index] = Arrival(hello, connection)
    try:
        _resolve_all(run, RESOLVE_SECONDS)
    except ClusterError:
        _close(arrived.values())
        raise
    return [arrived[index] for index in sorted(arrived)]


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


def _never_came(indexes: set[int], run: ClusterRun) -> ClusterError:
    names = " and ".join(f"worker {index} ({run.hosts[index]})" for index in sorted(indexes))
    minutes = f"{run.wait_seconds / 60:.0f} min" if run.wait_seconds >= 120 else f"{run.wait_seconds:.3g} s"
    unknown = [run.hosts[index] for index in sorted(indexes) if _unresolved(run.hosts[index]) is not None]
    why = f": no address for {' and '.join(unknown)}, as if no node had room for the pod" if unknown else ""
    return _error(
        f"{names} never came within {minutes}{why}",
        "Check that the same command runs on each host, and that each host reaches the first. In Kubernetes, "
        "`kubectl describe pod` says why a pod does not start. To wait longer, use --rendezvous-timeout.",
    )


def _error(message: str, hint: str) -> ClusterError:
    return ClusterError(Failure(kind="rendezvous", message=message, hint=hint))
