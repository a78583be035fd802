"""A comparison: the verdict on one result against another, and the matrix of a group."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from bench.model.interval import Interval
from bench.model.phase import Phase
from bench.model.record import Record

Verdict = Literal["faster", "same", "slower", "undecided", "not enough data"]

Unit = Literal["step", "example"]
"""What a ratio compares the times of: steps, or examples."""

DifferenceKind = Literal["axis", "context", "unfair"]

FIRST_LOSSES = "first losses"
"""Name of the difference between first losses."""

PYTHON_ENVIRONMENT = "env"
"""Name of the difference between two Python environments. Packages that differ have the kind `context`."""

THRESHOLD = 0.02
"""Default of the smallest relative difference that matters."""


class BreakEven(Record):
    """The step from which the side with the faster steps is ahead, counted from a cold start."""

    winner: Literal["base", "other", "none"] = Field(
        description="the side with the faster steps; none if the difference is not clear"
    )
    immediate: bool = Field(False, description="whether the winner is ahead from the first step")
    start_uncertain: bool = Field(
        False,
        description="whether an immediate winner may still start more slowly, because the interval of start_seconds "
        "contains 0",
    )
    steps: Interval | None = Field(
        None, description="steps after which the winner is ahead; high is null if that may never be"
    )
    examples: Interval | None = Field(
        None, description="the same in examples, if steps of the two hold different numbers of them"
    )
    epochs: Interval | None = Field(None, description="the same in epochs, if their length is known")
    training_steps: int | None = Field(None, description="steps of the whole training, if they are equal")
    start_seconds: Interval | None = Field(None, description="the other's start minus the baseline's")
    training_seconds: list[float] = Field(
        default_factory=list, description="whole training from a cold start, of the baseline and of the other"
    )


class Difference(Record):
    """One thing in which two results differ."""

    name: str = Field(description="what differs")
    base: Any = Field(description="the baseline's value; null if it has none")
    other: Any = Field(description="the other's value; null if it has none")
    kind: DifferenceKind = Field(
        description="axis: what is compared; context: good to know; unfair: makes the comparison unfair"
    )
    reason: str = Field("", description="why it makes the comparison unfair")


class Side(Record):
    """A result in a comparison."""

    id: str = Field(description="id of the result")
    label: str = Field(description="its label, unique within the comparison")
    processes: int = Field(description="number of processes that measured something")
    step_seconds: Interval | None = Field(None, description="typical step")
    failure: str | None = Field(None, description="why it failed, which leaves no verdict; null if it did not fail")


class PhaseDifference(Record):
    """One phase of a cold start, on both sides."""

    phase: Phase = Field(description="name of the phase")
    base: float = Field(description="mean seconds of the baseline")
    other: float = Field(description="mean seconds of the other")
    difference: Interval = Field(description="seconds of the other minus those of the baseline")
    measurable: bool = Field(description="whether the interval of the difference excludes 0")


class Comparison(Record):
    """The verdict on `other` against `base`, with its evidence."""

    base: Side = Field(description="the baseline")
    other: Side = Field(description="the result that the verdict is on")
    axis: str | None = Field(description="what is compared; null if the specs are equal")
    unit: Unit = Field(
        "step", description="what the ratio is per: an example if steps of the two hold different numbers of them"
    )
    paired: bool = Field(description="whether the two were interleaved, so that trials form pairs")
    ratio: Interval | None = Field(None, description="the other's time over the baseline's")
    verdict: Verdict = Field(description="what the interval of the ratio says against the threshold")
    mean_ratio: Interval | None = Field(None, description="the same for the mean step, which includes rare slow steps")
    mean_verdict: Verdict = Field(description="what the interval of the mean ratio says against the threshold")
    epoch_ratio: Interval | None = Field(
        None,
        description="the same over whole epochs of fit, with what passes between them, such as validations and "
        "callbacks; null if a loop is not as-written or a side did not time the ends of its epochs",
    )
    epoch_verdict: Verdict = Field(
        "not enough data", description="what the interval of the ratio over whole epochs says against the threshold"
    )
    threshold: float = Field(description="smallest relative difference that matters")
    needed_units: int | None = Field(
        None, description="trials, or processes on each side, that would settle an undecided verdict"
    )
    phases: list[PhaseDifference] = Field(default_factory=list, description="phases that both sides have")
    break_even: BreakEven | None = None
    differences: list[Difference] = Field(
        default_factory=list, description="first the axis, then what is unfair, then the context"
    )

    @property
    def speedup(self) -> Interval | None:
        """How many times as fast as the baseline the other is. None if the ratio is unknown or not positive."""
        return self.ratio.inverse if self.ratio is not None and self.ratio.value > 0 else None

    @property
    def differs_over_epochs(self) -> bool:
        """Whether the verdict over whole epochs is another than that on the steps, and is worth telling.

        It is if it says which side is faster. It also is if the verdict on the steps says so, and the intervals show
        that it does not hold over whole epochs.
        """
        if self.ratio is None or self.epoch_ratio is None or self.epoch_verdict == self.verdict:
            return False
        differ = ("faster", "slower")
        return self.epoch_verdict in differ or (self.verdict in differ and self.ratio.is_apart(self.epoch_ratio))

    @property
    def failed(self) -> list[Side]:
        """The sides that failed. Trials before a failure give a ratio, but no verdict."""
        return [side for side in (self.base, self.other) if side.failure is not None]

    @property
    def unfair(self) -> list[Difference]:
        """The differences that make this comparison unfair."""
        return [difference for difference in self.differences if difference.kind == "unfair"]


class MatrixCell(Record):
    """A comparison of the result of a row with that of a column."""

    ratio: Interval = Field(description="time of the row over that of the column")
    unit: Unit = Field(description="what the ratio is per")
    verdict: Verdict = Field(description="verdict on the result of the row")
    epoch_verdict: Verdict | None = Field(
        None, description="the same over whole epochs; null if it is not worth telling beside the verdict on the steps"
    )


class Matrix(Record):
    """Comparisons of all results of a group with one another."""

    results: list[Side] = Field(description="results of the rows and, in the same order, of the columns")
    rows: list[list[MatrixCell | None]] = Field(description="a cell per column; null if the two were not compared")
