"""The what-if `without-callbacks`: Call `fit` without callbacks and without its progress bar."""

from __future__ import annotations

from typing import Any

from bench.whatif import Program

WORDS = "fit without callbacks or output"
CAUSE = "callbacks and output"


def applies(program: Program) -> bool:
    """Return whether the program calls `fit` with callbacks or with a progress bar."""
    fit = program.facts.fit
    return fit is not None and (bool(fit.callbacks) or fit.prints)


def change_fit(tf: Any, model: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Remove callbacks and output from the arguments."""
    return {**arguments, "callbacks": None, "verbose": 0}
