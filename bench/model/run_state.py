"""The state of a run: its progress, which listeners receive, and the message that a hub receives.

Both use the same models, so that the code that measures and the code that shows progress do not import each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import Field, SkipValidation

from bench.model.explanation import Explanation
from bench.model.interval import Interval
from bench.model.record import Record
from bench.model.result import Result

MESSAGE_VERSION = 2

State = Literal["running", "finished", "failed", "interrupted"]

TITLE = 500
"""Maximum length of a run's title, in characters."""


class Estimate(Record):
    """The current estimate of one spec's step time."""

    title: str = Field(description="The spec, such as `cifar on cpu, fit`.")
    step_seconds: float = Field(description="Typical step time in seconds.")
    relative_error: float | None = Field(
        None, description="Half the confidence interval, relative to the step time; null after one process."
    )


class LargestPart(Record):
    """The largest part of a step, by the trials so far."""

    name: str = Field(description="The part, such as `input`.")
    share: Interval = Field(description="Its share of the step. `n` is the number of trials.")


class Progress(Record):
    """What a run is doing."""

    title: str = Field(description="The spec that is measured, such as `cifar on cpu, as-written`.")
    phase: str = Field(description="What its worker does, such as `import`, `warm-up` or `steady state`.")
    note: str = Field("", description="Why the phase takes long, if it does.")
    trial: int = Field(1, description="Number of the current trial, from 1. 0: a script's steps are looked for.")
    planned: int | None = Field(None, description="Planned number of trials; null before the pilot has ended.")
    elapsed: float = Field(0.0, description="Seconds since the workload's first worker started.")
    budget: float = Field(0.0, description="Time limit of the workload in seconds.")
    estimates: list[Estimate] = Field(default_factory=list)
    largest_part: LargestPart | None = Field(None, description="In an explanation: the largest part so far.")


@dataclass(frozen=True)
class LiveResult:
    """A result that is being measured.

    Args:
        result: The result so far. It grows.
        examples: Examples per step, or None if steps have no examples.
    """

    result: Result
    examples: int | None = None


class LiveProgress(Progress):
    """Progress for listeners in the same process, with the results and the explanation so far.

    Messages to a hub do not contain these.
    """

    earlier_trials: float = Field(0.0, description="Seconds that the trials before the current one took.")
    results: SkipValidation[tuple[LiveResult, ...]] = ()
    explanation: SkipValidation[Explanation | None] = None


Listener = Callable[[LiveProgress], None]


class RunState(Record):
    """The complete state of a run. Its start, each heartbeat and its end are such a message."""

    schema_version: int = MESSAGE_VERSION
    id: str
    attempt: int = Field(1, ge=1, le=2**31 - 1, description="Number of the attempt. A later one replaces it.")
    state: State
    title: str = Field(max_length=TITLE, description="What was asked for, such as `cifar, mnist`.")
    started: datetime
    devbench: str = Field(description="Version of devbench.")
    pool: str | None = None
    node: str | None = None
    heartbeat_seconds: float = Field(15.0, gt=0, le=3600, description="Time between two heartbeats in seconds.")
    progress: Progress | None = None
    results: list[str] = Field(default_factory=list, description="Ids of the results.")
    reason: str = Field("", description="Why the run failed or was interrupted.")
    observed: bool = Field(False, description="Whether a watcher reported this state, not the run itself.")
