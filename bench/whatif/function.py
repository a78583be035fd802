"""The what-if `function`: Put a `tf.function` around the step of a script that runs eagerly."""

from __future__ import annotations

from typing import Any

from bench.model.step_parts import StepPart
from bench.whatif import Program

WORDS = "a tf.function around the step"
CAUSE = "eager execution"
ACTS_ON: frozenset[StepPart] = frozenset({"own loop", "dispatch", "computing"})
ADVICE = "Put the whole step into one @tf.function."
TESTS_SUSPECT = True


def applies(program: Program) -> bool:
    """Return whether a function of the script is an eager step."""
    return program.facts.eager_step is not None and not program.facts.functions_eager


def change_step(tf: Any, function: Any) -> Any:
    """Return the step as a graph."""
    return tf.function(function)
