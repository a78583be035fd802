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

from pydantic import ValidationError

from bench.errors import DevbenchError, RunFailed
from bench.machine import system
from bench.model.failure import Failure
from bench.session.process import environment
from bench.session.starting import variables_of
from bench.session.worker_failure import last_lines
from bench.worker.protocol import Start
from bench.worker.rendezvous import messages
from bench.worker.rendezvous.losing import ending, lost
from bench.worker.rendezvous.messages import Begin, End, Hello, Lost, line
from bench.worker.rendezvous.ports import keep_alive, listen

RETRY_SECONDS = 0.5

DISMISS_SECONDS = 5.0
"""Seconds for which the first host tells the others that the study is over. They connect again and again."""


def serve(
    index: int,
    host: str,
    port: int,
    wait_seconds: float,
    study_seconds: float,
    localize: Callable[[Start, Path], Start],
    tell: Callable[[str], None],
) -> None:
    """Start workers for the first host until it says that the study is over.

    Args:
        index: number of this host. The first host is 0.
        host: the first host.
        port: its port.
        wait_seconds: how long the hosts wait for each other.
        study_seconds: time limit of the study. The first host may do without this one for as long.
        localize: takes an order and an empty folder, and returns the order with the paths of this host.
        tell: shows the user a message.

    Raises:
        RunFailed: the first host does not answer, or a worker failed.
    """
    told, failed = False, threading.Event()
    patience = wait_seconds + study_seconds
    last_seen = time.monotonic()
    while True:
        connection = _connect(host, port)
        if connection is None:
            if time.monotonic() - last_seen > patience:
                raise RunFailed(
                    f"worker 0 at {host}, port {port}, does not answer (waited {patience:.0f} s)",
                    "Its output says more. Check that the host is reachable and runs the same command with --index 0.",
                )
            time.sleep(RETRY_SECONDS)
            continue
        order = _order(connection, Hello.of_this_host(index), patience)
        last_seen = time.monotonic()
        if isinstance(order, End):
            connection.close()
            if failed.is_set():
                raise RunFailed(f"worker {index} failed", "Its output above, or that of worker 0, says why.")
            return
        if isinstance(order, Begin):
            if not told:
                tell(f"worker {index} of {host} started")
                told = True
            threading.Thread(target=_run, args=(connection, order.start, localize, tell, failed), daemon=True).start()
        else:  # the first host has ended, or does not want this worker now
            connection.close()
            time.sleep(RETRY_SECONDS)


def dismiss(port: int, count: int) -> None:
    """Tell the other hosts that the study is over, unless another program uses the port.

    Args:
        port: the port to which they connect.
        count: number of other hosts.
    """
    deadline = time.monotonic() + DISMISS_SECONDS
    dismissed: set[int] = set()
    with contextlib.suppress(OSError), listen(port) as listener:
        while len(dismissed) < count:
            listener.settimeout(max(0.01, deadline - time.monotonic()))
            connection, _ = listener.accept()
            with contextlib.suppress(OSError, ValidationError), connection:
                connection.settimeout(1.0)
                hello = messages.FROM_PEER.validate_json(connection.recv(4096))
                connection.sendall(line(End()))
                if isinstance(hello, Hello):
                    dismissed.add(hello.index)


def _connect(host: str, port: int) -> socket.socket | None:
    try:
        connection = socket.create_connection((host, port), timeout=5.0)
    except OSError:
        return None
    keep_alive(connection)
    return connection


def _order(connection: socket.socket, hello: Hello, patience: float) -> messages.ToPeer | None:
    """Say who this is, and return the first message. None if the connection ends, or if it is another program's."""
    text = b""
    connection.settimeout(patience)
    with contextlib.suppress(OSError, ValidationError):
        connection.sendall(line(hello))
        while not text.endswith(b"\n"):
            peeked = connection.recv(65536, socket.MSG_PEEK)  # what follows the line is for the worker's process
            end = peeked.find(b"\n") + 1 or len(peeked)
            if not end:
                return None
            text += connection.recv(end)
        connection.settimeout(None)
        return messages.TO_PEER.validate_json(text)
    return None


def _run(
    connection: socket.socket,
    start: Start,
    localize: Callable[[Start, Path], Start],
    tell: Callable[[str], None],
    failed: threading.Event,
) -> None:
    """Run a worker's process, and report how it ended if it failed."""
    with connection:
        try:
            with tempfile.TemporaryDirectory(prefix="devbench-", ignore_cleanup_errors=True) as scratch:
                code, lines = _ended(connection, localize(start, Path(scratch)), Path(scratch))
        except (DevbenchError, OSError) as error:
            failed.set()
            message, hint = str(error), getattr(error, "hint", "")
            tell(f"error: {message}")
            _report(connection, Failure(kind="rendezvous", message=message, hint=hint))
            return
        if code:
            failed.set()
            tell("\n".join([f"the process of this worker {ending(code)}", *lines]))
            _report(connection, lost(f"its process {ending(code)}").model_copy(update={"last_lines": lines}))


def _ended(connection: socket.socket, start: Start, folder: Path) -> tuple[int, list[str]]:
    """Run a worker's process in a folder. Return its exit code and the last lines of its output."""
    file = folder / "begin.json"
    file.write_text(json.dumps(Begin(start=start).model_dump(mode="json")), encoding="utf-8")
    with (folder / "stderr").open("w+b") as errors:
        process = subprocess.Popen(
            [*system.python("bench.worker.peer"), str(file)],
            stdin=connection.fileno(),
            stdout=connection.fileno(),
            stderr=errors,
            env=environment(variables_of(start.spec)),
        )
        code = process.wait()
        errors.seek(0)
        return code, last_lines(errors.read().decode(errors="replace")) if code else []


def _report(connection: socket.socket, failure: Failure) -> None:
    """Tell the first host why its worker here failed. A failure that the worker told itself comes first."""
    with contextlib.suppress(OSError):
        connection.sendall(line(Lost(failure=failure)))
