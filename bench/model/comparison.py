"""A comparison: two results side by side, and the matrix of a group."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from bench.model.record import Record
from bench.model.result import Interval

Verdict = Literal["faster", "same", "slower", "undecided", "not enough data"]


class BreakEven(Record):
    """Where two cold starts meet."""

    winner: Literal["base", "other", "none"] = Field(
        description="who is ahead in the long run; none where their steps are not known to differ"
    )
    immediate: bool = Field(False, description="the winner in the long run starts no slower either")
    start_uncertain: bool = Field(False, description="that may be noise: the starts are not known to differ")
    steps: Interval | None = Field(
        None, description="steps after which the winner is ahead; high is none where it may never be"
    )
    examples: Interval | None = Field(
        None, description="the same in examples, where steps of the two hold unequal numbers"
    )
    epochs: Interval | None = Field(None, description="the same in passes over the data, where their length is known")
    training_steps: int | None = Field(None, description="steps of the whole training, where both take as many")
    start_seconds: Interval | None = Field(None, description="the other's start less the base's")
    training_seconds: list[float] = Field(default_factory=list, description="whole cold training of base and other")


DifferenceKind = Literal["axis", "context", "unfair"]


class Difference(Record):
    """One thing in which two results differ."""

    name: str
    base: Any = Field(description="the base's value; none where it has none")
    other: Any = Field(description="the other's value")
    kind: DifferenceKind = Field(description="what is compared, what is to be known, or what makes it unfair")
    reason: str = Field("", description="why it is unfair")


THRESHOLD = 0.02
"""Default of the smallest relative difference that matters."""


Unit = Literal["step", "example"]
"""What a ratio is of."""


class Side(Record):
    """What identifies a result in a comparison."""

    id: str
    label: str
    processes: int = Field(description="processes that measured something")
    step_seconds: Interval | None = None


class PhaseDifference(Record):
    """One phase of a cold start on both sides."""

    phase: str
    base: float = Field(description="mean seconds")
    other: float
    difference: Interval = Field(description="the other's seconds less the base's")


class Comparison(Record):
    """A verdict on `other` as against `base`, with what it stands on."""

    base: Side
    other: Side
    axis: str | None = Field(description="what is compared; none where the specs are the same")
    unit: Unit = Field("step", description="what the ratio is of: of examples where the two differ in examples a step")
    paired: bool = Field(description="whether the two took turns in trials; else they were measured apart")
    ratio: Interval | None = Field(None, description="the other's time over the base's")
    verdict: Verdict
    mean_ratio: Interval | None = Field(
        None, description="the same of the mean step, in which steps count that are slow but seldom"
    )
    threshold: float
    needed_units: int | None = Field(
        None, description="trials (or processes a side) that would settle it, where it is undecided"
    )
    phases: list[PhaseDifference] = Field(default_factory=list)
    break_even: BreakEven | None = None
    differences: list[Difference] = Field(default_factory=list)

    @property
    def unfair(self) -> list[Difference]:
        """What makes this comparison unfair."""
        return [d for d in self.differences if d.kind == "unfair"]


class Cell(Record):
    """How the result of a row stands to that of a column."""

    ratio: Interval = Field(description="the row's time over the column's")
    unit: Unit = Field(description="what the ratio is of")
    verdict: Verdict = Field(description="on the row's result as against the column's")


class Matrix(Record):
    """Everyone's time over everyone's."""

    results: list[Side] = Field(description="of the rows, and in the same order of the columns")
    rows: list[list[Cell | None]] = Field(description="a cell for each column; none where two were not compared")
