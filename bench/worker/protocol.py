"""The messages between the parent and a worker: one JSON document per line, in both directions.

The parent sends orders, the worker sends events. `bench.worker.channel` keeps them apart from what a program prints.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from bench.model.device import Device
from bench.model.facts import Facts
from bench.model.failure import Failure
from bench.model.framework import Framework
from bench.model.interval import Number
from bench.model.phase import Activity, Phase
from bench.model.placement import Placement
from bench.model.printed import Printed
from bench.model.profile import Profile
from bench.model.recognition import Recognition, StepSource
from bench.model.sample import FullTraining, LossPrecision
from bench.model.spec import Spec

BLOCK_SECONDS = 0.08
"""The shortest time of a block, in seconds.

The synchronization at its end (about 0.05 ms) and the start after a suspension take less than 1% of it.
"""


class WorkerMessage(BaseModel):
    """A strict message."""

    model_config = ConfigDict(extra="forbid")


class ScriptRun(WorkerMessage):
    """How a worker runs a script.

    `file` and `folder` are the script's file and its working folder. If they belong to a copy, `copy_root` is replaced
    by `original_root` in everything that the worker reports. Without `target`, the worker is the scout: it only counts,
    for `scout_seconds` after the first step, and reports what it recognized. With `inspect`, the worker also looks into
    the steps. `cells` holds the code of a notebook, by the names of its cells. `timeout` is the number of seconds of
    silence after which the parent takes the worker for hung.
    """

    file: str
    folder: str
    copy_root: str = ""
    original_root: str = ""
    target: StepSource | None = None
    scout_seconds: float = 0.0
    inspect: bool = False
    check_placement: bool = True
    cells: dict[str, str] = Field(default_factory=dict)
    timeout: float = math.inf


class ClusterRun(WorkerMessage):
    """How a worker meets the other workers of its spec.

    Without `hosts`, all workers run on this machine. Each is pinned to its entry of `cpus`, and sees only its entry of
    `devices`. With `hosts`, one for each worker, the others connect to `port` of the first within `wait_seconds`.
    `addresses`, on which TensorFlow listens, is filled in when all workers are there.
    """

    index: int = 0
    cpus: list[list[int]] = Field(default_factory=list)
    devices: list[str] = Field(default_factory=list)
    hosts: list[str] = Field(default_factory=list)
    port: int = 0
    wait_seconds: float = 0.0
    addresses: list[str] = Field(default_factory=list)


class Start(WorkerMessage):
    """The first order: set up for a spec.

    `cluster` is set if the spec has workers. With `full`, the worker trains the whole program instead of timing blocks.
    `script` is set if the spec is a script's. `spawned` is the parent's wall-clock time just before it started the
    worker, in seconds since the epoch. The start of the interpreter is timed from it.
    """

    do: Literal["start"] = "start"
    spec: Spec
    spawned: float
    full: bool = False
    script: ScriptRun | None = None
    cluster: ClusterRun | None = None


class Go(WorkerMessage):
    """Time `blocks` blocks of one series. Without `steps`, find out how many steps fill a block.

    `lead` untimed steps run before the first block, because the caches are cold after a suspension.
    """

    do: Literal["go"] = "go"
    series: str = "step"
    steps: int | None = None
    blocks: int = 1
    lead: int = 0


class Latency(WorkerMessage):
    """Run `lead` untimed steps, then the latency pass.

    It synchronizes each of at most `steps` steps, for at most `seconds`. If much else passes between the steps, it ends
    earlier (`bench.worker.latency_pass`).
    """

    do: Literal["latency"] = "latency"
    steps: int
    seconds: float
    lead: int = 0


class Trace(WorkerMessage):
    """Write a trace of `steps` steps into a folder, by TensorFlow's profiler."""

    do: Literal["trace"] = "trace"
    folder: str
    steps: int


class Finish(WorkerMessage):
    """Leave the timed part, run the diagnosis and end.

    `check_placement` asks for the placement check. `inspect` asks for what only an explanation needs, which takes
    seconds, and `time_stages` also for the times of the pipeline's stages. `brief` leaves out what earlier processes of
    the spec have measured. `time_waits` asks how often epochs wait at their ends.
    """

    do: Literal["finish"] = "finish"
    check_placement: bool = True
    inspect: bool = False
    time_stages: bool = False
    brief: bool = False
    time_waits: bool = True


class PhaseStarted(WorkerMessage):
    """The worker entered a phase.

    `note` says what the worker does, or why it takes long. With `slow`, the worker may be silent for many minutes, from
    the start of this phase until the first steps are done.
    """

    event: Literal["phase-started"] = "phase-started"
    phase: Activity
    note: str = ""
    slow: bool = False


class PhaseEnded(WorkerMessage):
    """A phase took this many seconds."""

    event: Literal["phase-ended"] = "phase-ended"
    phase: Phase
    seconds: float


class Ready(WorkerMessage):
    """The worker is set up and has run the first steps. `series` are the names that `Go` may name.

    `bytes` and `floors` describe probes, by the name of their series.
    """

    event: Literal["ready"] = "ready"
    series: list[str]
    bytes: dict[str, int] = Field(default_factory=dict)
    floors: dict[str, str] = Field(default_factory=dict)


class BlockTimed(WorkerMessage):
    """One block was timed. `epoch_end_seconds` passed between epochs meanwhile, and are not part of `seconds`."""

    event: Literal["block"] = "block"
    series: str
    seconds: float
    steps: int
    cpu_seconds: float
    epoch_end_seconds: float = 0.0


class Latencies(WorkerMessage):
    """Seconds of single, synchronized steps. The median cost of the synchronization is subtracted."""

    event: Literal["latencies"] = "latencies"
    seconds: list[float]


class PeersTimed(WorkerMessage):
    """Step times divided by that of this worker, timed together: of each other worker by index, and of the slowest.

    `slowest_step_ratio` is the mean over steps, in each of which another worker may be the slowest.
    """

    event: Literal["peers-timed"] = "peers-timed"
    step_ratios: list[float]
    slowest_step_ratio: float | None = None


class EnvironmentRead(WorkerMessage):
    """TensorFlow and the device, as they came up in this worker."""

    event: Literal["environment"] = "environment"
    framework: Framework
    device: Device


class FactsRead(WorkerMessage):
    """All facts that the worker has read so far. The event replaces earlier ones of its kind."""

    event: Literal["facts"] = "facts"
    facts: Facts


class Note(WorkerMessage):
    """A sentence for the reader of the result."""

    event: Literal["note"] = "note"
    text: str


class FirstLosses(WorkerMessage):
    """Losses of the first steps, or the root mean square of their outputs, for the same-answer check."""

    event: Literal["first-losses"] = "first-losses"
    values: list[Number]
    precision: LossPrecision


class PlacementChecked(WorkerMessage):
    """The devices that the operations of a step ran on."""

    event: Literal["placement"] = "placement"
    placement: Placement


class ProfileRead(WorkerMessage):
    """The profile, read from the trace of TensorFlow's profiler."""

    event: Literal["profile"] = "profile"
    profile: Profile


class Trained(WorkerMessage):
    """The whole training is over."""

    event: Literal["full-training"] = "full-training"
    full: FullTraining


class Recognized(WorkerMessage):
    """How the steps of a script were recognized."""

    event: Literal["recognized"] = "recognized"
    recognition: Recognition


class ProgramEnded(WorkerMessage):
    """The script ended by itself. No more blocks follow."""

    event: Literal["program-ended"] = "program-ended"


class PrintedRead(WorkerMessage):
    """What the script printed."""

    event: Literal["printed"] = "printed"
    printed: Printed


class Failed(WorkerMessage):
    """The worker cannot continue, and knows why."""

    event: Literal["failed"] = "failed"
    failure: Failure


class Done(WorkerMessage):
    """Everything that was ordered is done. The worker ends."""

    event: Literal["done"] = "done"


Order = Annotated[Start | Go | Latency | Trace | Finish, Field(discriminator="do")]
Event = Annotated[
    PhaseStarted
    | PhaseEnded
    | Ready
    | BlockTimed
    | Latencies
    | PeersTimed
    | EnvironmentRead
    | FactsRead
    | Note
    | FirstLosses
    | PlacementChecked
    | ProfileRead
    | Trained
    | Recognized
    | ProgramEnded
    | PrintedRead
    | Failed
    | Done,
    Field(discriminator="event"),
]
ORDER: TypeAdapter[Order] = TypeAdapter(Order)
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
