"""The what-if `without-callbacks`: Call `fit` without callbacks and without its progress bar."""

from __future__ import annotations

from typing import Any

from bench.model.step_parts import StepPart
from bench.whatif import Program

WORDS = "fit without callbacks or output"
CAUSE = "callbacks and output"
ACTS_ON: frozenset[StepPart] = frozenset({"own loop", "fit"})
ADVICE = "Move the work of callbacks from batches to the end of an epoch, and call fit with verbose=2."
TESTS_SUSPECT = True


def applies(program: Program) -> bool:
    """Return whether the program calls `fit` with callbacks or with a progress bar."""
    fit = program.facts.fit
    return fit is not None and (bool(fit.callbacks) or fit.prints)


def change_fit(tf: Any, model: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Remove callbacks and output from the arguments."""
    return {**arguments, "callbacks": None, "verbose": 0}
