"""The what-if `graph`: Run the model's train step as a graph, if it was compiled with `run_eagerly`."""

from __future__ import annotations

from typing import Any

from bench.model.step_parts import StepPart
from bench.whatif import Program

WORDS = "run_eagerly off"
CAUSE = "eager execution"
ACTS_ON: frozenset[StepPart] = frozenset({"own loop", "fit", "dispatch", "computing"})
ADVICE = "Compile the model without run_eagerly."
TESTS_SUSPECT = True


def applies(program: Program) -> bool:
    """Return whether the program trains by `fit` eagerly."""
    facts = program.facts
    return facts.fit is not None and bool(facts.run_eagerly) and not facts.functions_eager


def change_fit(tf: Any, model: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Turn `run_eagerly` off."""
    model.run_eagerly = False
    return arguments
