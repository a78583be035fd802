"""The parts of a step, in the order of the loops that leave them out."""

from __future__ import annotations

from typing import Literal

from bench.model.loops import LOOPS, Loop

StepPart = Literal["own loop", "fit", "input", "copies", "dispatch", "computing"]
STEP_PARTS: tuple[StepPart, ...] = ("own loop", "fit", "input", "copies", "dispatch", "computing")
"""All parts. The loop at the same position in `LOOPS` is the last one whose step includes the part."""


def loop_of(name: str) -> Loop:
    """Return the loop with a name, as the type `Loop`."""
    return next(loop for loop in LOOPS if loop == name)


def parts_between(upper: Loop, lower: Loop) -> frozenset[StepPart]:
    """Return the parts that a step has in the upper loop, and does not have in the lower one."""
    return frozenset(STEP_PARTS[LOOPS.index(upper) : LOOPS.index(lower)])


def parts_of(loop: Loop) -> frozenset[StepPart]:
    """Return the parts that a step has in a loop."""
    return frozenset(STEP_PARTS[LOOPS.index(loop) :])
