"""Sentences about one result."""

from __future__ import annotations

from bench.model.result import Result
from bench.render import numbers


def outcome(result: Result) -> str:
    """Return what one result says by itself: how it failed, its step time, and its projection."""
    sentences = [f"The run {failed}." for failed in (failure(result),) if failed]
    step, projection, series = result.summary.step_seconds, result.projection, result.summary.series
    if step is not None:
        unknown = " (from one process, so the error is unknown)" if step.low is None else ""
        sentences.append(f"Step time: {numbers.interval(step)}{unknown}.")
        if projection is not None:
            sentences.append(f"Projected training: {numbers.interval(projection.build_and_fit_seconds)}.")
    elif series:
        sentences.append(f"{numbers.count(len(series), 'series was', 'series were')} measured.")
    return " ".join(sentences) or "No step was measured."


def failure(result: Result) -> str:
    """Say how a result failed, such as "failed: the loss became NaN"; empty if it did not."""
    if result.status != "failed":
        return ""
    return "failed" + (f": {result.failure.message.rstrip('.')}" if result.failure else "")
