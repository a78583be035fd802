"""Where the time of a whole training goes: the start, building, steps, and the ends of epochs.

`bench.analyse.training_time` gives the time of a training; this file divides it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from bench.analyse.explain.callbacks import VALIDATION, at_epoch_ends
from bench.analyse.samples import cold_starts, main_series, mean_step, merged_facts, usable_samples, warm_up_excess
from bench.analyse.training_time import Epochs, with_epochs
from bench.model.explanation import STEPS, WallTimePart
from bench.model.phase import BUILD_PHASES, LAUNCH_PHASES
from bench.model.result import Result
from bench.model.sample import ProcessSample

START = "starting Python and TensorFlow"
DATA = "preparing the data"
BUILD = "building and tracing"
EPOCHS = "between epochs"
ASIDES = "work between some steps, such as a validation"
WAITS = "waits of tf.data between epochs"


def wall_time(base: Result) -> list[WallTimePart]:
    """Divide the projected time of a training into parts, the largest first.

    Args:
        base: the program as written, with its projection.

    Returns:
        Empty if the time of the training is not projected, or is only that of one step.
    """
    samples = [sample for sample in with_epochs(cold_starts(usable_samples(base))) if main_series(sample)]
    if base.projection is None or not samples or merged_facts(samples).calls_fit_for_each_step:
        return []  # the projection is that of one call
    columns = [_seconds(sample, base.projection.steps) for sample in samples]
    seconds = {name: statistics.fmean(column[name] for column in columns) for name in columns[0]}
    seconds[WAITS] = base.projection.epoch_end_wait_seconds
    seconds |= _divided(seconds.pop(EPOCHS), samples, base.projection.steps)
    total = sum(seconds.values())
    parts = [WallTimePart(name=name, seconds=time, share=time / total) for name, time in seconds.items() if time > 0]
    return sorted(parts, key=lambda part: part.seconds, reverse=True)


def _seconds(sample: ProcessSample, steps: int) -> dict[str, float]:
    """Return the seconds of each part by the figures of one process."""
    series, epochs = main_series(sample), Epochs.of(sample)
    mean = mean_step(series.blocks) if series else math.nan
    full_steps = max(0, steps - 1 - epochs.partials(steps))
    built = sum(sample.phases.get(name, 0.0) for name in BUILD_PHASES)
    return {
        STEPS: full_steps * mean,
        START: sum(sample.phases.get(name, 0.0) for name in LAUNCH_PHASES if name != "data"),
        DATA: sample.phases.get("data", 0.0),
        BUILD: built + max(0.0, warm_up_excess(sample, mean, full_steps)),
        VALIDATION: epochs.validation_seconds(steps),
        ASIDES: epochs.aside_seconds(steps),
        EPOCHS: epochs.seconds(steps) - epochs.validation_seconds(steps) - epochs.aside_seconds(steps),
    }


def _divided(seconds: float, samples: Sequence[ProcessSample], steps: int) -> dict[str, float]:
    """Divide the time between epochs into callbacks and the rest."""
    length = Epochs.of(samples[0]).length
    count = math.ceil(steps / length) if length else 0
    parts = {name: count * each for name, each in at_epoch_ends(samples)}
    if sum(parts.values()) > seconds:  # callbacks and the ends of epochs were timed in different epochs
        parts = {name: part * seconds / sum(parts.values()) for name, part in parts.items()}
    return {**parts, EPOCHS: seconds - sum(parts.values())}
