"""What the callbacks of the program's `fit` cost, by the time of each call."""

from __future__ import annotations

from collections.abc import Sequence

from bench.analyse.explain.units import time_text
from bench.analyse.samples import mean_step, median_step, merged_facts
from bench.model.facts import CallbackTime
from bench.model.result import Result
from bench.model.sample import ProcessSample

NAMED_SHARE = 0.2
"""Smallest share of the time of all callbacks for which one is named."""

VALIDATION = "validation"

FIXES = {
    VALIDATION: "Validate less often, with fit(validation_freq=5), or on fewer batches, with validation_steps.",
    "TensorBoard": "Use TensorBoard without histogram_freq and write_images, or with a larger histogram_freq.",
    "ModelCheckpoint": "Save less often: ModelCheckpoint with save_best_only, save_weights_only or a larger save_freq.",
}
"""What to change about work at the end of an epoch, by what takes longest."""


def epoch_end_fix(samples: Sequence[ProcessSample], validation: float) -> str:
    """Return what to change about the validation or the callback that takes longest at the end of an epoch.

    Args:
        samples: the processes.
        validation: seconds of the validation per epoch.
    """
    times = merged_facts(samples).callback_times
    longest = max(times.callbacks, key=lambda callback: callback.epoch_seconds, default=None) if times else None
    name = VALIDATION
    if longest is not None and longest.epoch_seconds > validation:
        name = longest.name
    return FIXES.get(name, f"Let {name} do less at the end of an epoch, or do it less often.")


def step_share(base: Result, samples: Sequence[ProcessSample]) -> float | None:
    """Return the share of the mean step that callbacks take. None if they were not timed.

    They were timed over all steps, and may do most of their work in a few.
    """
    times = merged_facts(samples).callback_times
    if times is None:
        return None
    step = median_step(base, mean_step)
    return min(1.0, sum(callback.step_seconds for callback in times.callbacks) / step)


def rare_share(base: Result) -> float:
    """Return the share of the mean step that rare slow steps add to the typical step. Differences cannot show it."""
    return max(0.0, 1 - median_step(base) / median_step(base, mean_step))


def in_steps(samples: Sequence[ProcessSample]) -> tuple[list[str], list[CallbackTime]]:
    """Return the callbacks that take most of the callbacks' time in a step: in words, and as they were timed."""
    times = merged_facts(samples).callback_times
    callbacks = times.callbacks if times is not None else []
    total = sum(callback.step_seconds for callback in callbacks)
    largest = sorted(callbacks, key=lambda callback: callback.step_seconds, reverse=True)
    named = [callback for callback in largest if callback.step_seconds > NAMED_SHARE * total]
    return [f"{described(callback)} {time_text(callback.step_seconds)}" for callback in named], named


def at_epoch_ends(samples: Sequence[ProcessSample]) -> list[tuple[str, float]]:
    """Return each callback that takes time at the end of an epoch, with its seconds per epoch."""
    times = merged_facts(samples).callback_times
    timed = times.callbacks if times is not None else []
    return [(described(callback), callback.epoch_seconds) for callback in timed if callback.epoch_seconds > 0]


def described(callback: CallbackTime) -> str:
    """Return the name of a callback, with the methods of the model that it calls."""
    return f"{callback.name} (calls {', '.join(callback.calls)})" if callback.calls else callback.name
