"""What the parent and a worker say to each other: one JSON document a line, both ways.

The worker reads orders from its standard input and reports events on its original standard output. It
keeps that as a descriptor of its own and points descriptor 1 at stderr, so nothing that a program prints
gets in between.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from bench.model.environment import Device, Framework
from bench.model.facts import Facts
from bench.model.result import Failure, FullTraining, Placement, Profile
from bench.model.spec import Spec


class Message(BaseModel):
    """A strict message."""

    model_config = ConfigDict(extra="forbid")


class Start(Message):
    """First order: set yourself up for this spec.

    `full` trains the whole program instead of timing blocks. `spawned` is the parent's wall clock just
    before it started the worker, from which the interpreter's own start is told.
    """

    do: Literal["start"] = "start"
    spec: Spec
    spawned: float
    full: bool = False


class Go(Message):
    """Time `blocks` blocks of one series; without `steps`, find how many steps fill a block.

    `lead` steps are done untimed before the first block: after a suspension the caches are cold.
    """

    do: Literal["go"] = "go"
    series: str = "step"
    steps: int | None = None
    blocks: int = 1
    lead: int = 0


class Latency(Message):
    """Synchronise each of at most `steps` steps, for at most `seconds`."""

    do: Literal["latency"] = "latency"
    steps: int
    seconds: float


class Trace(Message):
    """Have TensorFlow's profiler write a trace of so many steps into a folder."""

    do: Literal["trace"] = "trace"
    folder: str
    steps: int


class Finish(Message):
    """Leave the timed part, prove the placement if `prove`, measure what is left, and end.

    `inspect` asks for what only an explanation needs and takes seconds, `stages` for the pipeline's stages among it;
    `brief` leaves out what the processes before it have measured; `waits` asks how often epochs wait for their ends.
    """

    do: Literal["finish"] = "finish"
    prove: bool = True
    inspect: bool = False
    stages: bool = False
    brief: bool = False
    waits: bool = True


class PhaseBegun(Message):
    """The worker entered a phase; a long one says why in `note`, and where it may be silent for many minutes `slow`.

    Then so may be the phases after it, up to the steps.
    """

    event: Literal["phase-begun"] = "phase-begun"
    phase: str
    note: str = ""
    slow: bool = False


class PhaseDone(Message):
    """A phase took this long."""

    event: Literal["phase"] = "phase"
    phase: str
    seconds: float


class Ready(Message):
    """Set up; the first step is done. `series` are the names that can be asked for."""

    event: Literal["ready"] = "ready"
    series: list[str]
    bytes: dict[str, int] = Field(default_factory=dict)
    floors: dict[str, str] = Field(default_factory=dict)


class Timed(Message):
    """One block."""

    event: Literal["block"] = "block"
    series: str
    seconds: float
    steps: int
    cpu_seconds: float


class Latencies(Message):
    """Seconds of single steps, each synchronised; the median cost of the synchronisation itself is subtracted."""

    event: Literal["latency"] = "latency"
    seconds: list[float]


class EnvironmentRead(Message):
    """TensorFlow and the device, as they came up in this worker."""

    event: Literal["environment"] = "environment"
    framework: Framework
    device: Device


class FactsRead(Message):
    """All facts that the worker has read so far. It replaces the previous event of this kind."""

    event: Literal["facts"] = "facts"
    facts: Facts


class Note(Message):
    """A sentence for the reader of the result."""

    event: Literal["note"] = "note"
    text: str


class Answer(Message):
    """Losses or output sums of the first steps, to be the same wherever the spec ran."""

    event: Literal["answer"] = "answer"
    values: list[float]
    kind: Literal["exact", "reduced", "changed"]


class Proof(Message):
    """Where the step's operations ran."""

    event: Literal["placement"] = "placement"
    placement: Placement


class Traced(Message):
    """A trace is written; this is what it says."""

    event: Literal["traced"] = "traced"
    profile: Profile


class Trained(Message):
    """A whole training is over."""

    event: Literal["full"] = "full"
    full: FullTraining


class Failed(Message):
    """The worker can't go on, and knows why."""

    event: Literal["failed"] = "failed"
    failure: Failure


class Done(Message):
    """Everything asked for is done; the worker ends."""

    event: Literal["done"] = "done"


Order = Annotated[Start | Go | Latency | Trace | Finish, Field(discriminator="do")]
Event = Annotated[
    PhaseBegun
    | PhaseDone
    | Ready
    | Timed
    | Latencies
    | EnvironmentRead
    | FactsRead
    | Note
    | Answer
    | Proof
    | Traced
    | Trained
    | Failed
    | Done,
    Field(discriminator="event"),
]
ORDER: TypeAdapter[Order] = TypeAdapter(Order)
EVENT: TypeAdapter[Event] = TypeAdapter(Event)


BLOCK_SECONDS = 0.08
"""The least that a block lasts, so that its synchronisation (some 0.05 ms) and a turn's start weigh under 1%."""
