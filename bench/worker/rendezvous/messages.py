"""The messages between the first worker and the others: one JSON document per line, in both directions."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from bench.model.failure import Failure
from bench.worker.protocol import Start, WorkerMessage


class Hello(WorkerMessage):
    """A worker has arrived. TensorFlow will listen on `port` of its host."""

    event: Literal["hello"] = "hello"
    index: int
    port: int
    tensorflow: str


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


class End(WorkerMessage):
    """The study is over."""

    do: Literal["end"] = "end"


FromPeer = Annotated[Hello | Pong | Steady | Timed | Lost, Field(discriminator="event")]
ToPeer = Annotated[Begin | Ping | Report | End, Field(discriminator="do")]
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
