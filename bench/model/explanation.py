"""An explanation: where a step's time goes and which what-ifs make it faster."""

from __future__ import annotations

from pydantic import Field

from bench.model.comparison import Word
from bench.model.record import Record
from bench.model.result import SCHEMA_VERSION, Interval, Profile
from bench.model.roofline import Roofline
from bench.model.spec import Loop


class Part(Record):
    """What lies between two neighbouring levels."""

    name: str
    what: str
    upper: str = Field(description="loop that has it")
    lower: str = Field(description="loop that has not")
    seconds: float = Field(description="of a step, mean over trials")
    share: Interval = Field(description="of the program's own step, at the level at which all of them hold together")
    measurable: bool = Field(description="whether the interval is clear of 0")
    fix: str = Field("", description="what to change, where it takes much of the step")


class Gain(Record):
    """One what-if, measured."""

    what_if: str = Field(description="in words")
    option: str = Field(description="as it is written on the command line")
    unit: str = Field("step", description="what the ratio is of: a step, or an example for another batch")
    ratio: Interval | None = Field(
        None, description="time after over before, at the level at which all of them hold together"
    )
    verdict: Word
    fixes: str = Field("", description="the cause that it takes away, where it is faster")
    failure: str | None = None


class Finding(Record):
    """Something read from the runs themselves, with what it stands on and what to do."""

    cause: str
    sentence: str
    evidence: str
    fix: str = ""
    share: float | None = Field(
        None,
        description="of the step, at most; of an epoch or of the training, for what comes once in it; none where it "
        "was not measured",
    )


class Fastest(Record):
    """The fastest configuration that was measured."""

    words: str = Field(description="what is different from the program as it is")
    unit: str = Field(description="what the ratio is of: a step or an example")
    times: Interval = Field(description="how many times as fast as the program as it is")
    command: str = Field(description="as a command line")


class Explanation(Record):
    """Why a step takes as long as it does."""

    schema_version: int = SCHEMA_VERSION
    id: str
    label: str
    step_seconds: float = Field(description="of the program as it is")
    trials: int
    parts: list[Part]
    rest_seconds: float = Field(description="of the lowest level: computing, and what no level takes away")
    rest_share: Interval
    lowest: str = Field(description="the lowest level's loop")
    gains: list[Gain]
    combined: Gain | None = Field(None, description="all what-ifs that are faster, combined")
    findings: list[Finding] = Field(default_factory=list)
    roofline: Roofline | None = Field(None, description="of the lowest level")
    profile: Profile | None = Field(None, description="a trace of the program as it is (`--profile`)")
    disagreements: list[str] = Field(default_factory=list, description="where that trace and the ladder differ")
    what_if_loop: str = Field("", description="loop that the what-ifs were tried on; empty where none was tried")
    fastest: Fastest | None = Field(None, description="none where nothing was faster than the program as it is")
    missing: list[str] = Field(default_factory=list, description="levels that do not apply or failed, and why")
    caveats: list[str] = Field(default_factory=list, description="what its levels warn of, and what it could not have")

    @property
    def rest(self) -> tuple[str, str]:
        """What the lowest level's time is, in a word and in a few."""
        if self.lowest in BARE:
            return "computing", "and what no level takes away"
        return "not divided", "since no barer loop was measured"


BARE: tuple[Loop, ...] = ("host-batches", "resident", "fused")
"""Loops that have no input in them: what is left of a step there is computing, mostly."""
