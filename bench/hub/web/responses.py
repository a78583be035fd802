"""The API's responses. Each is a schema of the OpenAPI document."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from bench.hub.db import records
from bench.hub.db.run_queries import StoredRun
from bench.model.interval import Interval
from bench.model.receipt import WriteOutcome
from bench.model.run_state import RunState

NEXT = "Cursor of the next page; null if this is the last one."


class Receipt(BaseModel):
    """What the hub did with a document."""

    id: str
    outcome: WriteOutcome = Field(
        description="`same`: the hub already has the document. `superseded`: the hub has a later state, which stays."
    )


class ResultSummary(BaseModel):
    """A result in a list."""

    id: str
    attempt: int
    status: str
    failure: str | None = Field(description="Kind of failure.")
    created: datetime
    received: datetime
    purpose: str
    parent: str | None = Field(description="Id of the sweep, explanation or scaling study that the result belongs to.")
    group: str = Field(description="Results of one group were measured together, interleaved.")
    key: str = Field(description="Hash of the spec.")
    comparison_key: str = Field(description="Comparison key: the spec and where it ran.")
    workload: str
    title: str
    label: str
    loop: str
    backend: str
    pool: str
    node: str | None = Field(description="Name of the node of the cluster.")
    tensorflow: str | None
    devbench: str
    processes: int
    step_seconds: Interval | None
    bytes: int = Field(description="Size of the document.")
    tags: list[str] = Field(description="Short words that people added to find results by.")
    note: str = Field(description="What people noted about the result.")
    silenced: bool = Field(description="Whether alerts ignore the result.")

    @classmethod
    def of(cls, row: Any) -> ResultSummary:
        """Convert a row of `tables.RESULTS`."""
        same = {name: getattr(row, name) for name in cls.model_fields if hasattr(row, name)}
        converted = {
            "created": records.to_datetime(row.created),
            "received": records.to_datetime(row.received),
            "step_seconds": records.step_interval(row),
            "bytes": row.size,
            "tags": row.tags.split(),
        }
        return cls(**(same | converted))


class ResultPage(BaseModel):
    """A page of results, newest first."""

    results: list[ResultSummary]
    next: str | None = Field(description=NEXT)


class History(BaseModel):
    """The runs of one comparison key, oldest first."""

    comparison_key: str
    results: list[ResultSummary]
    truncated: bool = Field(description="Whether the hub has older runs than these.")
    change_points: list[str] = Field(description="Ids of the results at which the step time changed.")


class RunStatus(BaseModel):
    """A run and what the hub knows about it."""

    run: RunState
    state: Literal["running", "finished", "failed", "interrupted", "lost"] = Field(
        description="As the run reported it. `lost`: the run missed three heartbeats."
    )
    last_seen: datetime

    @classmethod
    def of(cls, stored: StoredRun) -> RunStatus:
        """Convert a stored run."""
        return cls(run=stored.run, state=stored.state, last_seen=records.to_datetime(stored.last_seen))


class RunPage(BaseModel):
    """A page of runs, running ones first."""

    runs: list[RunStatus]
    next: str | None = Field(description=NEXT)


class ExplanationSummary(BaseModel):
    """An explanation in a list."""

    id: str
    label: str
    received: datetime


class ExplanationPage(BaseModel):
    """A page of explanations, newest first."""

    explanations: list[ExplanationSummary]
    next: str | None = Field(description=NEXT)
