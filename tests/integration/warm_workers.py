"""A worker server that all tests of a process share. It imports TensorFlow once. A plugin of pytest.

Tests use it if their subject is neither the start of a worker nor the time that it takes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pytest
from warm_devbench import SharedServer, warm_start

from bench.config.settings import load
from bench.machine import system
from bench.model.loops import LOOPS
from bench.session.starting import variables_of
from bench.session.worker_server import WorkerServer
from bench.study.plan import plan

SERVER, DEVBENCH = (Path(__file__).with_name(f"warm_{name}.py") for name in ("server", "devbench"))


@dataclass(frozen=True)
class WarmServer:
    """How a process finds the server.

    Args:
        descriptor: that of its socket, which the process inherits.
        variables: environment variables of its workers.
        fresh: loops whose workers are fresh.
        short: whether a trial has fewer blocks than usual, because its times are not the subject.
    """

    descriptor: int
    variables: Mapping[str, str]
    fresh: tuple[str, ...] = ()
    short: bool = True

    @property
    def devbench(self) -> list[str]:
        """The command that stands in for `devbench`. It inherits the descriptor."""
        return [sys.executable, str(DEVBENCH), json.dumps(asdict(self))]

    @contextmanager
    def connect(self) -> Iterator[SharedServer]:
        """Yield the server, to fork processes of this one."""
        server = SharedServer(os.dup(self.descriptor), self.variables, self.fresh)
        try:
            yield server
        finally:
            server.disconnect()


@pytest.fixture(scope="session")
def warm_server() -> Iterator[WarmServer | None]:
    """A server. None if this system has none."""
    if sys.platform != "linux":
        yield None
        return
    (group,) = plan(["matmul"], load(backend="cpu"))
    variables = variables_of(group.planned[0].spec)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(system, "python", lambda module: [sys.executable, str(SERVER)])
        server = WorkerServer(variables)
    try:
        server.wait(300)
        yield WarmServer(server._connection.fileno(), variables)
    finally:
        server.close()


@pytest.fixture(scope="session")
def usual_blocks(warm_server: WarmServer | None) -> WarmServer | None:
    """The server, for tests that compare durations: a trial has as many blocks as usual."""
    return warm_server and replace(warm_server, short=False)


@pytest.fixture(scope="session")
def fresh_workers(warm_server: WarmServer | None) -> WarmServer | None:
    """The server, for tests of the start or the end of a worker. It forks only the processes that read programs."""
    return warm_server and replace(warm_server, fresh=LOOPS)


@pytest.fixture
def warm_workers(warm_server: WarmServer | None) -> Iterator[None]:
    """Let `bench.run` in this process fork its workers from the server."""
    if warm_server is None:
        yield
        return
    with warm_server.connect() as server, warm_start(server, warm_server.short):
        yield
