"""How far a run is, as whoever conducts it tells whoever shows it.

It stands apart from both, a floor below, so that measuring knows nothing of terminals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import Field

from bench.model.record import Record
from bench.model.result import Result


@dataclass(frozen=True)
class Estimate:
    """What is known so far of one spec's step.

    Args:
        title: the spec, such as "cifar on cpu, fit".
        step_seconds: typical step, in seconds.
        relative_error: half its confidence interval over its value; none while one process is all there is.
    """

    title: str
    step_seconds: float
    relative_error: float | None = None


@dataclass(frozen=True)
class Measured:
    """One of the specs under way.

    Args:
        result: what is known of it so far; it goes on to grow.
        examples: examples of a step, where a step has any.
    """

    result: Result
    examples: int | None = None


@dataclass(frozen=True)
class Progress:
    """One moment of a run.

    Args:
        title: what is measured, such as "cifar on cpu, as-written".
        phase: what the worker does, such as "import", "warm-up" or "steady state".
        note: why that takes long, where it does.
        trial: which trial of processes it is, from 1.
        planned: how many trials it will take, once the pilot has told.
        elapsed: seconds since this workload's first worker was started.
        budget: seconds that it may take (`--max-time`).
        estimates: what is known so far, one a spec.
        measured: the specs whose workers take turns.
    """

    title: str
    phase: str
    note: str = ""
    trial: int = 1
    planned: int | None = None
    elapsed: float = 0.0
    budget: float = 0.0
    estimates: tuple[Estimate, ...] = ()
    measured: tuple[Measured, ...] = ()


Listener = Callable[[Progress], None]


MESSAGE_VERSION = 1


State = Literal["running", "finished", "failed", "interrupted"]


class Known(Record):
    """What is known so far of one spec's step."""

    title: str
    step_seconds: float
    relative_error: float | None = None


class Now(Record):
    """One moment of a run."""

    title: str = Field(description="what is measured, such as cifar on cpu, as-written")
    phase: str
    note: str = ""
    trial: int = Field(1, description="which trial of processes it is, from 1")
    planned: int | None = Field(None, description="trials that it will take, once that is known")
    elapsed: float = Field(0.0, description="seconds since this workload's first worker was started")
    budget: float = Field(0.0, description="seconds that it may take")
    known: list[Known] = Field(default_factory=list)

    @classmethod
    def of(cls, progress: Progress) -> Now:
        """A moment as it is told to whoever draws progress."""
        return cls(
            title=progress.title,
            phase=progress.phase,
            note=progress.note,
            trial=progress.trial,
            planned=progress.planned,
            elapsed=progress.elapsed,
            budget=progress.budget,
            known=[
                Known(title=each.title, step_seconds=each.step_seconds, relative_error=each.relative_error)
                for each in progress.estimates
            ],
        )


class RunState(Record):
    """The whole state of a run: its start, each heartbeat and its end are such a document."""

    schema_version: int = MESSAGE_VERSION
    id: str
    attempt: int = Field(1, ge=1, le=2**31 - 1, description="which attempt at this id; a later one supersedes it")
    state: State
    title: str = Field(description="what was asked for, such as cifar, mnist")
    started: datetime
    devbench: str = Field(description="version of devbench")
    pool: str | None = None
    node: str | None = None
    heartbeat_seconds: float = Field(15.0, gt=0, le=3600, description="how often the hub will hear of it")
    now: Now | None = None
    results: list[str] = Field(default_factory=list, description="ids of what it has measured")
    reason: str = Field("", description="why it failed or was interrupted")
    observed: bool = Field(False, description="said of it by a watcher, who saw its end from outside, not by itself")
