"""An explanation: where the time of a step goes, and which what-ifs make the program faster."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bench.model.causes import BETWEEN_EPOCHS, BETWEEN_STEPS, FILLING, OUTSIDE
from bench.model.comparison import Verdict
from bench.model.facts import CallKind
from bench.model.interval import Interval
from bench.model.loops import BARE
from bench.model.profile import Profile
from bench.model.record import Record
from bench.model.result import SCHEMA_VERSION
from bench.model.roofline import Roofline
from bench.model.spec import Loop
from bench.model.step_parts import StepPart, loop_of, parts_between

USEFUL_GAIN = 0.05
"""Smallest saving that is worth a change, as a share of the time. A change that certainly saves less is "no gain"."""

MINOR = 0.5
"""Steps that take less than this share of an epoch's time are minor. The ladder then stops after one trial."""


class Part(Record):
    """The time between two neighbouring levels of the ladder."""

    name: str
    what: str = Field(description="what the upper level does and the lower one does not")
    upper: str = Field(description="loop of the upper level")
    lower: str = Field(description="loop of the lower level")
    seconds: float = Field(description="per step, mean over trials")
    share: Interval = Field(description="of the program's own step; the intervals of all parts hold together with 95%")
    measurable: bool = Field(description="whether the interval excludes 0")
    includes_input: bool = Field(False, description="whether preparing batches belongs to it")
    fix: str = Field("", description="what to change; empty if the part is small")
    what_ifs: list[str] = Field(default_factory=list, description="what-ifs that the fix proposes")

    @property
    def step_parts(self) -> frozenset[StepPart]:
        """The parts of a step that its upper level has and its lower level does not."""
        return parts_between(loop_of(self.upper), loop_of(self.lower))

    @property
    def at_most(self) -> float | None:
        """The largest share of the step that it may take: the upper bound of its interval. None without an interval."""
        return None if self.share.high is None else max(0.0, self.share.high)


class Gain(Record):
    """The effect of one what-if, or of several combined."""

    name: str = Field("", description="name of the what-if; empty for several combined")
    what_if: str = Field(description="in words")
    option: str = Field(description="how to ask for it on the command line")
    unit: str = Field("step", description="unit of the ratio: step, or example if the batch differs")
    ratio: Interval | None = Field(
        None,
        description="time with the what-if divided by time without it; the intervals of all what-ifs hold together "
        "with 95%; None if it failed",
    )
    verdict: Verdict
    loop: str = Field("", description="loop that it was tried on")
    cause: str = Field("", description="the cause of lost time that it removes; empty if it is not faster")
    advice: str = Field("", description="what to write in the program to get the same effect")
    failure: str | None = None

    @property
    def speedup(self) -> Interval | None:
        """How many times as fast the program is with the what-if. None if it failed."""
        return self.ratio.inverse if self.ratio is not None else None

    @property
    def saving(self) -> float | None:
        """Share of the time that it saves, negative if it takes longer. None if it failed."""
        return 1 - self.ratio.value if self.ratio is not None else None

    @property
    def saving_bounds(self) -> tuple[float, float] | None:
        """The least and the most that it may save, as shares of the time. None without an interval."""
        if self.ratio is None or self.ratio.low is None or self.ratio.high is None:
            return None
        return 1 - self.ratio.high, 1 - self.ratio.low

    @property
    def is_too_wide(self) -> bool:
        """Whether it says nothing: the interval of its saving is wider than the whole time, or it has none."""
        bounds = self.saving_bounds
        return bounds is None or bounds[1] - bounds[0] > 1

    @property
    def is_without_gain(self) -> bool:
        """Whether its interval includes no saving at all, and lies below `USEFUL_GAIN`. It is not slower."""
        bounds = self.saving_bounds
        return bounds is not None and self.verdict != "slower" and bounds[0] <= 0 and bounds[1] < USEFUL_GAIN

    @property
    def is_refuted(self) -> bool:
        """Whether the trials rule out a useful gain."""
        return self.is_without_gain or self.verdict in ("same", "slower")


STEPS = "steps"
"""Name of the part of a training that its steps take."""


class Finding(Record):
    """A cause of lost time that the runs show."""

    cause: str = Field(description="its name")
    sentence: str
    evidence: str = Field(description="what the finding is based on")
    fix: str = ""
    what_ifs: list[str] = Field(default_factory=list, description="what-ifs that the fix proposes")
    parts: list[StepPart] = Field(default_factory=list, description="parts of the step that its share is of")
    detail: bool = Field(False, description="whether it is small, or follows from a larger cause")
    share: float | None = Field(
        None,
        description="the largest share of the step that the cause can take, or of the epoch or training if it occurs "
        "once in it; None if it was not measured",
    )
    is_lower_bound: bool = Field(False, description="whether the cause takes more than its share")
    shared: bool = Field(False, description="whether the share is that of all its parts, of which the cause takes some")
    estimated: bool = Field(
        False, description="whether the share is an estimate, as by samples, not a measured difference"
    )


class OwnStepPart(Record):
    """A part of the program's own step, by samples of the stack. On an accelerator, it is the host's time."""

    kind: CallKind = Field(description="what the program spends it on")
    share: float = Field(description="of the step")
    lines: str = Field(description="the lines of the program that take most of it; empty if it passes outside them")
    steps: int = Field(description="number of steps that were sampled")


class WallTimePart(Record):
    """A part of the time of the whole program."""

    name: str
    seconds: float = Field(description="in the whole program")
    share: float = Field(description="of the time of the whole program")
    outside: bool = Field(False, description="whether it passes before the first step or after the last one")


class Untried(Record):
    """A what-if that was not tried, because the parts of the step that it acts on are small."""

    name: str = Field(description="name of the what-if")
    what_if: str = Field(description="in words")
    option: str = Field(description="how to ask for it on the command line")
    at_most: float = Field(description="the largest share of the time that it can save, ends of epochs included")


CauseKind = Literal["finding", "part", "computing", "what-if"]
"""What shows a cause of lost time: a finding, a part of the step, the lowest level, or only a what-if that helps."""


class ProgramChange(Record):
    """Something to change in the program, with the cause of lost time that it removes."""

    kind: CauseKind = Field(description="what shows the cause")
    name: str = Field(description="cause of the finding, name of the part or of the what-if, or computing")
    cause: str = Field(description="the cause, in sentences")
    share: float | None = Field(
        description="largest share that the cause takes, of the step or of what its sentence names; None if it is not "
        "known"
    )
    gains: list[Gain] = Field(description="what was measured to help, largest gain first")
    fix: str = Field(description="what else to change, whose gain is not known; empty if nothing is known")
    fix_undecided: bool = Field(
        False, description="whether that was tried, and the trials do not decide whether it helps"
    )
    fix_failed: bool = Field(False, description="whether that was tried, and the program failed with it")


class Fastest(Record):
    """The fastest configuration that was measured."""

    words: str = Field(description="how it differs from the program as written")
    unit: str = Field(description="unit of the speedup: step or example")
    speedup: Interval = Field(description="how many times as fast as the program as written")
    command: str = Field(description="command line that runs it")


class Explanation(Record):
    """Why a step takes as long as it does."""

    schema_version: int = SCHEMA_VERSION
    id: str
    label: str
    step_seconds: float = Field(description="of the program as written")
    trials: int
    answer: list[ProgramChange] = Field(default_factory=list, description="what to change, what saves most first")
    parts: list[Part]
    wall_time: list[WallTimePart] = Field(
        default_factory=list,
        description="parts of the projected time of the whole program, the largest first; empty if it is not known",
    )
    own_step: list[OwnStepPart] = Field(
        default_factory=list,
        description="parts of the step of a loop of the program's own, the largest first; empty for another loop",
    )
    rest_seconds: float = Field(description="per step of the lowest level")
    rest_share: Interval = Field(description="time of the lowest level as a share of the program's own step")
    lowest_level: str = Field(description="loop of the lowest level")
    gains: list[Gain]
    untried: list[Untried] = Field(
        default_factory=list, description="what-ifs that were not tried, because they can gain little"
    )
    combined: Gain | None = Field(
        None, description="the best what-if of each kind that is faster, combined; None if fewer than two are faster"
    )
    findings: list[Finding] = Field(default_factory=list)
    roofline: Roofline | None = Field(None, description="of the lowest level")
    profile: Profile | None = Field(None, description="a profiler's trace of the program as written (`--profile`)")
    disagreements: list[str] = Field(default_factory=list, description="differences between that trace and the ladder")
    what_if_loop: str = Field("", description="loop that most what-ifs were tried on; empty if none was tried")
    fastest: Fastest | None = Field(None, description="None if no what-if was faster than the program as written")
    missing_levels: dict[Loop, str] = Field(
        default_factory=dict, description="loops that do not apply or failed, with the reason"
    )
    caveats: list[str] = Field(default_factory=list, description="warnings of the levels, and what is incomplete")

    @property
    def own_loop(self) -> str:
        """The loop of the program as written."""
        return self.parts[0].upper if self.parts else self.lowest_level

    @property
    def lowest_loop(self) -> Loop:
        """The loop of the lowest level."""
        return loop_of(self.lowest_level)

    @property
    def most_speedup(self) -> Interval | None:
        """How many times as fast the lowest level is. None if it still includes the input or the program's own loop."""
        return self.rest_share.inverse if self.lowest_loop in BARE and self.rest_share.value > 0 else None

    @property
    def largest_part(self) -> Part | None:
        """The measurable part that takes the largest share of the step. None if no part takes time measurably."""
        parts = [part for part in self.parts if part.measurable and part.share.value > 0]
        return max(parts, key=lambda part: part.share.value) if parts else None

    @property
    def between_epochs(self) -> float | None:
        """Share of an epoch that passes between its steps and those of the next one. None if it is small or unknown."""
        return self._share_of(BETWEEN_EPOCHS)

    @property
    def between_steps(self) -> float | None:
        """Share of the time of a script's own loop that passes between its steps. None if it is small or unknown."""
        return self._share_of(BETWEEN_STEPS)

    def _share_of(self, cause: str) -> float | None:
        return next((finding.share for finding in self.findings if finding.cause == cause), None)

    @property
    def steps_share(self) -> float:
        """Share of the time of an epoch that its steps take. 1 if little or nothing is known to pass between them."""
        between = self.between_epochs or self.between_steps or 0.0
        return (1.0 - between) * (1.0 - (self._share_of(FILLING) or 0.0))

    @property
    def steps_are_minor(self) -> bool:
        """Whether the steps take less than half of the time of an epoch, or work outside them most of the program's."""
        return self.steps_share < MINOR or self.outside_work > MINOR

    @property
    def outside_work(self) -> float:
        """Share of the whole program's time that notable work before the first step and after the last one takes."""
        return sum(finding.share or 0.0 for finding in self.findings if finding.cause in OUTSIDE)

    @property
    def inside_share(self) -> float:
        """Share of the whole program's time that passes from its first step to its last one. 1 if it is not known."""
        return 1.0 - sum(part.share for part in self.wall_time if part.outside)

    @property
    def training_steps_share(self) -> float:
        """Share of the time of the whole program that its steps take. 0 if it is not known."""
        return next((part.share for part in self.wall_time if part.name == STEPS), 0.0)

    @property
    def unassigned_share(self) -> float:
        """Share of the step that cannot be assigned to a part. It may exceed 1, because parts can be negative."""
        return sum(abs(part.share.value) for part in self.parts if not part.measurable)
