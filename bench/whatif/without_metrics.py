"""The what-if `without-metrics`: Train a compiled model without its metrics, except for the loss."""

from __future__ import annotations

from typing import Any

from bench.model.step_parts import StepPart
from bench.whatif import Program

WORDS = "fit without metrics"
CAUSE = "metrics computed in each step"
ACTS_ON: frozenset[StepPart] = frozenset({"fit", "dispatch", "computing"})
ADVICE = "Remove metrics from compile, or compute them only in validation."
TESTS_SUSPECT = True


def applies(program: Program) -> bool:
    """Return whether the program trains a model by `fit` that was compiled with metrics."""
    return program.facts.fit is not None and program.facts.fit.metrics


def change_fit(tf: Any, model: Any, arguments: dict[str, Any]) -> dict[str, Any] | None:
    """Remove the metrics from the model, and the train function that computes them."""
    if not metrics_of(model):
        return None
    if hasattr(model, "_compile_metrics"):
        model._compile_metrics = None
    else:
        model.compiled_metrics = type(model.compiled_metrics)(output_names=model.output_names)
    model.train_function = None
    return arguments


def metrics_of(model: Any) -> Any:
    """Return the metrics that a model was compiled with, falsy if there are none. Works with Keras 3 and 2.10."""
    compiled = model._compile_metrics if hasattr(model, "_compile_metrics") else model.compiled_metrics
    if compiled is None:
        return None
    return compiled._user_metrics or compiled._user_weighted_metrics
