"""The messages between the first worker and the others: one JSON document per line, in both directions."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from bench.machine import installed
from bench.model.failure import Failure
from bench.version import __version__
from bench.worker.protocol import Start, WorkerMessage
from bench.worker.rendezvous.ports import free_port


class Hello(WorkerMessage):
    """A worker has arrived. TensorFlow will listen on `port` of its host.

    The versions are those on its host.
    """

    event: Literal["hello"] = "hello"
    index: int
    port: int
    tensorflow: str
    keras: str = "unknown"
    devbench: str = "unknown"

    @classmethod
    def of_this_host(cls, index: int) -> Hello:
        """Return the message of a worker on this host."""
        return cls(
            index=index,
            port=free_port(),
            tensorflow=installed.tensorflow_version(),
            keras=installed.version("keras") or "none",
            devbench=__version__,
        )

    @property
    def versions(self) -> dict[str, str]:
        """The versions that must be the same on all hosts, by the names of the packages."""
        return {"devbench": self.devbench, "TensorFlow": self.tensorflow, "Keras": self.keras}


class Pong(WorkerMessage):
    """The answer to `Ping`."""

    event: Literal["pong"] = "pong"


class Steady(WorkerMessage):
    """The worker has done its first steps."""

    event: Literal["steady"] = "steady"


class Timed(WorkerMessage):
    """The answer to `Report`: mean seconds of a step, and seconds of single steps.

    If steps take too long, there are no single steps, or the mean is None too.
    """

    event: Literal["timed"] = "timed"
    step_seconds: float | None
    single_steps: list[float] = Field(default_factory=list)


class Lost(WorkerMessage):
    """The worker cannot continue. `failure` gives the reason."""

    event: Literal["lost"] = "lost"
    failure: Failure


class Begin(WorkerMessage):
    """Set up for a spec and run its steps until this connection ends."""

    do: Literal["begin"] = "begin"
    start: Start


class Ping(WorkerMessage):
    """Answer at once."""

    do: Literal["ping"] = "ping"


class Report(WorkerMessage):
    """Time some steps and report."""

    do: Literal["report"] = "report"


class Until(WorkerMessage):
    """Run steps until there were `steps` in all."""

    do: Literal["until"] = "until"
    steps: int


class End(WorkerMessage):
    """The study is over."""

    do: Literal["end"] = "end"


FromPeer = Annotated[Hello | Pong | Steady | Timed | Lost, Field(discriminator="event")]
ToPeer = Annotated[Begin | Ping | Report | Until | End, Field(discriminator="do")]
FROM_PEER: TypeAdapter[FromPeer] = TypeAdapter(FromPeer)
TO_PEER: TypeAdapter[ToPeer] = TypeAdapter(ToPeer)


def line(message: WorkerMessage) -> bytes:
    """Return a message as one line, as it is sent."""
    return message.model_dump_json().encode() + b"\n"


def received(connection: socket.socket) -> Iterator[FromPeer]:
    """Yield the messages of a worker until its connection ends, or until it sends anything else."""
    rest = b""
    with contextlib.suppress(OSError, ValidationError):
        while data := connection.recv(65536):
            *lines, rest = (rest + data).split(b"\n")
            for text in lines:
                yield FROM_PEER.validate_json(text)
