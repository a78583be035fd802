"""The parts of a step, in the order of the loops that leave them out."""

from __future__ import annotations

from typing import Literal

from bench.model.loops import LOOPS, Loop

StepPart = Literal["own loop", "fit", "input", "copies", "dispatch", "computing"]
STEP_PARTS: tuple[StepPart, ...] = ("own loop", "fit", "input", "copies", "dispatch", "computing")
"""All parts. Each but the last is what a loop of `LOOPS` does and the next one does not."""


def loop_of(name: str) -> Loop:
    """Return a loop by its name."""
    return next(loop for loop in LOOPS if loop == name)


def parts_between(upper: Loop, lower: Loop) -> frozenset[StepPart]:
    """Return the parts that a loop has and a lower one has not."""
    return frozenset(STEP_PARTS[LOOPS.index(upper) : LOOPS.index(lower)])


def parts_of(loop: Loop) -> frozenset[StepPart]:
    """Return the parts that a step has in a loop."""
    return frozenset(STEP_PARTS[LOOPS.index(loop) :])
