"""On every host but the first: starts a worker process whenever the first host measures with several workers.

A worker connects to the first host, says who it is, and gets the order to begin. Its process then talks to the first
host by itself (`bench.worker.peer`).
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bench.errors import DevbenchError, RunFailed
from bench.machine import installed, system
from bench.model.failure import Failure
from bench.session.launch import variables_of
from bench.session.process import environment
from bench.worker.cluster import messages
from bench.worker.cluster.losing import ending, lost
from bench.worker.cluster.messages import Begin, End, Hello, Lost, line
from bench.worker.cluster.ports import free_port, listen
from bench.worker.protocol import Start

RETRY_SECONDS = 0.5

DISMISS_SECONDS = 5.0
"""Seconds in which the others must come for the message that the study is over. They connect all the time."""


def serve(
    index: int,
    host: str,
    port: int,
    wait_seconds: float,
    localize: Callable[[Start, Path], Start],
    tell: Callable[[str], None],
) -> None:
    """Start workers for the first host until it says that the study is over.

    Args:
        index: this host among all, from 1.
        host: the first host.
        port: its port.
        wait_seconds: how long to wait for the first host, at first and whenever it does not answer.
        localize: from an order and an empty folder to the order with the paths of this host.
        tell: shows the user a message.

    Raises:
        RunFailed: the first host does not answer, or a worker failed.
    """
    told, failed = False, threading.Event()
    deadline = time.monotonic() + wait_seconds
    while True:
        connection = _connect(host, port)
        if connection is None:
            if failed.is_set() or time.monotonic() > deadline:
                reason = "a worker failed here" if failed.is_set() else f"waited {wait_seconds:.0f} s"
                raise RunFailed(
                    f"worker 0 at {host}, port {port}, does not answer ({reason})",
                    "Its output says more. Check that the host is reachable and runs the same command with --index 0.",
                )
            time.sleep(RETRY_SECONDS)
            continue
        hello = Hello(index=index, port=free_port(), tensorflow=installed.tensorflow_version())
        order = _order(connection, hello)
        if isinstance(order, End):
            return
        if isinstance(order, Begin):
            deadline = time.monotonic() + wait_seconds
            if not told:
                tell(f"worker {index} of {host} started")
                told = True
            threading.Thread(target=_run, args=(connection, order.start, localize, failed), daemon=True).start()
        else:  # the first host has ended, or does not want this worker
            connection.close()
            time.sleep(RETRY_SECONDS)


def dismiss(port: int, count: int) -> None:
    """Tell the other hosts that the study is over.

    Args:
        port: the port to which they connect.
        count: number of other hosts.
    """
    deadline = time.monotonic() + DISMISS_SECONDS
    with contextlib.suppress(OSError), listen(port) as listener:
        for _ in range(count):
            listener.settimeout(max(0.01, deadline - time.monotonic()))
            connection, _ = listener.accept()
            with connection:
                connection.sendall(line(End()))
                connection.settimeout(1.0)
                connection.recv(4096)  # its greeting, so that closing does not reset the connection


def _connect(host: str, port: int) -> socket.socket | None:
    try:
        connection = socket.create_connection((host, port), timeout=5.0)
    except OSError:
        return None
    connection.settimeout(None)
    return connection


def _order(connection: socket.socket, hello: Hello) -> messages.ToPeer | None:
    """Say who this is, and return the first message. None if the connection ends."""
    text = b""
    with contextlib.suppress(OSError):
        connection.sendall(line(hello))
        while not text.endswith(b"\n"):
            peeked = connection.recv(65536, socket.MSG_PEEK)  # what follows the line is for the worker's process
            end = peeked.find(b"\n") + 1 or len(peeked)
            if not end:
                return None
            text += connection.recv(end)
        return messages.TO_PEER.validate_json(text)
    return None


def _run(
    connection: socket.socket,
    start: Start,
    localize: Callable[[Start, Path], Start],
    failed: threading.Event,
) -> None:
    """Run a worker's process, and report how it ended if it failed."""
    with connection, tempfile.TemporaryDirectory(prefix="devbench-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        try:
            own = localize(start, folder)
        except DevbenchError as error:
            failed.set()
            _report(connection, Failure(kind="rendezvous", message=error.message, hint=error.hint))
            return
        file = folder / "begin.json"
        file.write_text(json.dumps(Begin(start=own).model_dump(mode="json")), encoding="utf-8")
        process = subprocess.Popen(
            [*system.python("bench.worker.peer"), str(file)],
            stdin=connection.fileno(),
            stdout=connection.fileno(),
            env=environment(variables_of(own.spec)),
        )
        code = process.wait()
        if code:
            failed.set()
            _report(connection, lost(f"its process {ending(code)}"))


def _report(connection: socket.socket, failure: Failure) -> None:
    """Tell the first host why its worker here failed. A failure that the worker told itself comes first."""
    with contextlib.suppress(OSError):
        connection.sendall(line(Lost(failure=failure)))
