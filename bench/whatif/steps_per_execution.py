"""The what-if `steps-per-execution`: Let `fit` run 32 steps in each call of TensorFlow."""

from __future__ import annotations

from typing import Any

from bench.model.step_parts import StepPart
from bench.whatif import Program

STEPS = 32

WORDS = f"{STEPS} steps per call of TensorFlow"
CAUSE = "one call of TensorFlow per step"
ACTS_ON: frozenset[StepPart] = frozenset({"fit", "dispatch"})
ADVICE = f"Run several steps in each call of TensorFlow: compile(steps_per_execution={STEPS})."


def applies(program: Program) -> bool:
    """Return whether the program trains by `fit`."""
    return program.facts.fit is not None


def change_fit(tf: Any, model: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Set `steps_per_execution` of a compiled model."""
    if not hasattr(model, "_configure_steps_per_execution"):
        model.steps_per_execution = STEPS
    elif int(model._steps_per_execution.numpy()) != STEPS:
        # Keras 2.10 creates a new variable. A train function that was traced before keeps using the old one.
        model._configure_steps_per_execution(STEPS)
    return arguments
