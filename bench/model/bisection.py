"""A bisection: which version or commit made a program slower."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bench.model.interval import Interval
from bench.model.record import Record

Found = Literal["good", "bad", "undecided", "skipped"]


class Race(Record):
    """One race of a version or commit against another one."""

    name: str = Field(description="the version or commit")
    against: str = Field(description="what it raced against")
    verdict: Found = Field(description="bad: slower than `against`; skipped: it does not run")
    ratio: Interval | None = Field(None, description="its step time over that of the other; null if it was skipped")
    reason: str = Field("", description="why it was skipped")
    seconds: float = Field(description="duration of the race, including the preparation of environments or worktrees")


class SlowDown(Record):
    """A version or commit that is slower than the one before it."""

    first_bad: str = Field(description="the first one that is slower")
    last_good: str = Field(description="the last one before it that is not slower")
    skipped: list[str] = Field(
        default_factory=list,
        description="those between the two that have no verdict; any of them may be the first slower one",
    )
    ratio: Interval = Field(description="step time of the first bad one over that of the good one it raced against")


class Bisection(Record):
    """The search between a good and a bad end."""

    chain: list[str] = Field(description="all versions or commits, from the good end to the bad one")
    races: list[Race] = Field(default_factory=list, description="the races, in their order")
    slow_downs: list[SlowDown] = Field(default_factory=list, description="slow-downs, oldest first")
