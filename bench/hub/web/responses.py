"""What the API answers with; each is in the OpenAPI document under its name."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from bench.hub.db import records
from bench.hub.db.queries import SeenRun
from bench.hub.db.writes import Outcome
from bench.model.result import Interval
from bench.model.run_state import RunState


class Sent(BaseModel):
    """What became of a document that was sent."""

    id: str
    outcome: Outcome = Field(description="superseded: a later state was known, and stays")


class Listed(BaseModel):
    """A result in a list."""

    id: str
    attempt: int
    status: str
    failure: str | None = Field(description="kind of failure")
    created: datetime
    received: datetime
    purpose: str
    parent: str | None
    group: str
    key: str = Field(description="the spec's key")
    series: str = Field(description="the comparison key: the spec and where it ran")
    workload: str
    title: str
    label: str
    loop: str
    backend: str
    pool: str
    tensorflow: str | None
    devbench: str
    processes: int
    step_seconds: Interval | None
    bytes: int = Field(description="of its document")

    @classmethod
    def of(cls, row: Any) -> Listed:
        """A row of `tables.RESULTS`."""
        same = {name: getattr(row, name) for name in cls.model_fields if hasattr(row, name)}
        own = {
            "created": records.moment(row.created),
            "received": records.moment(row.received),
            "group": row.group,
            "step_seconds": records.interval(row),
            "bytes": row.size,
        }
        return cls(**(same | own))


class ResultPage(BaseModel):
    """A part of the list of results, newest first."""

    results: list[Listed]
    next: str | None = Field(description="cursor of the next page; none where this is the last")


class History(BaseModel):
    """The runs of one comparison key, oldest first; of very many the newest."""

    series: str
    points: list[Listed]
    more: bool = Field(False, description="whether there are older runs than these")
    changes: list[str] = Field(description="ids of the results with which a new level begins")


class ToldRun(BaseModel):
    """A run, with what the hub knows of it beside."""

    run: RunState
    state: Literal["running", "finished", "failed", "interrupted", "lost"] = Field(
        description="as the run says, or lost: it has been silent for three heartbeats"
    )
    seen: datetime

    @classmethod
    def of(cls, found: SeenRun) -> ToldRun:
        """A run as it was read."""
        return cls(run=found.run, state=found.state, seen=records.moment(found.seen))


class Runs(BaseModel):
    """A part of the list of runs, those that go on first."""

    runs: list[ToldRun]
    next: str | None = Field(description="cursor of the next page; none where this is the last")


class NamedExplanation(BaseModel):
    """An explanation in a list."""

    id: str
    label: str
    received: datetime


class Explanations(BaseModel):
    """A page of explanations, newest first."""

    explanations: list[NamedExplanation]
    next: str | None = Field(None, description="cursor of the next page; none where this is the last")
