"""The whole training: projected, and measured by `--full`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from bench.model.result import Result
from bench.render import numbers
from bench.render.fields.field import Field, priced

PROJECTED, MEASURED = "whole training, projected", "whole training, measured"

LEAST_WAITS = 0.05
"""The waits at the ends of epochs are shown only if they take more than this share of the projected training."""

Scope = Literal["build_and_fit", "total"]


def _projected(name: str) -> Callable[[Result], Any]:
    return lambda result: getattr(result.projection, name) if result.projection else None


def _waits(result: Result) -> float | None:
    """Return the projected waits at the ends of epochs, in seconds. None if they are a small part of the training."""
    projection = result.projection
    if projection is None or projection.epoch_end_wait_seconds <= LEAST_WAITS * projection.build_and_fit_seconds.value:
        return None
    return projection.epoch_end_wait_seconds


def _measured_time(scope: Scope) -> Callable[[Result], tuple[float, float] | None]:
    """Return a function that reads the seconds of the full training, and the relative error of their projection."""

    def read(result: Result) -> tuple[float, float] | None:
        projection = result.projection
        if projection is None or projection.full_training is None:
            return None
        return getattr(projection.full_training, f"{scope}_seconds"), getattr(projection, f"{scope}_error")

    return read


def _time_text(figure: tuple[float, float]) -> str:
    """Return a time of the full training, and the error of its projection."""
    seconds, error = figure
    return f"{numbers.time(seconds)} (projected {numbers.signed_percent(error)})"


def _metrics(result: Result) -> dict[str, float] | None:
    """Return loss, accuracy and the like at the end of the full training. None if none was run."""
    return result.projection.full_training.metrics if result.projection and result.projection.full_training else None


FIELDS = (
    Field("projected_steps", "steps", _projected("steps"), lambda steps: f"{steps:,}", PROJECTED),
    Field(
        "build_and_fit_seconds", "build and fit", _projected("build_and_fit_seconds"), numbers.interval, PROJECTED, "s",
        "projected_seconds", metric_labels=(("scope", "build_and_fit"),), brief="projected training",
    ),
    Field(
        "total_seconds", "from a cold start", _projected("total_seconds"), numbers.interval, PROJECTED, "s",
        "projected_seconds", metric_labels=(("scope", "total"),),
    ),
    Field(
        "epoch_end_wait_seconds",
        "waits at epoch ends",
        _waits,
        numbers.time,
        PROJECTED,
        "s",
        brief="waits at epoch ends",
    ),
    Field(
        "cost",
        "cost, {}",
        lambda result: priced(result, result.projection.cost if result.projection else None),
        numbers.money,
        PROJECTED,
        entry_label="currency",
        brief="training cost, {}",
    ),
    Field(
        "measured_build_and_fit_seconds", "build and fit", _measured_time("build_and_fit"), _time_text, MEASURED, "s",
        brief="measured training",
    ),
    Field("measured_total_seconds", "from a cold start", _measured_time("total"), _time_text, MEASURED, "s"),
    Field(
        "outcome",
        "{}",
        _metrics,
        lambda value: f"{value:.4g}",
        MEASURED,
        entry_label="name",
        entry_text=lambda name: name.replace("_", " "),
        brief="{}",
    ),
)  # fmt: skip
