"""Where the time of a whole program goes: the start, building, steps, the ends of epochs, and what follows.

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
from bench.model.facts import Facts
from bench.model.phase import BUILD_PHASES, LAUNCH_PHASES
from bench.model.result import Result
from bench.model.sample import ProcessSample

START = "starting Python and TensorFlow"
DATA = "preparing the data"
BUILD = "building and tracing"
BEFORE = "the script before its first step"
TRACING = "tracing and the first steps"
AFTER = "the script after its last step"
EPOCHS = "between epochs"
ASIDES = "work between some steps, such as a validation"
WAITS = "waits of tf.data between epochs"

OUTSIDE = (START, DATA, BEFORE, AFTER)
"""What passes before the first step or after the last one. Building a model counts as a part of its training."""


def wall_time(base: Result) -> list[WallTimePart]:
    """Divide the projected time of a program into parts, the largest first.

    Args:
        base: the program as written, with its projection.

    Returns:
        Empty if the time of the training is not projected.
    """
    samples = [sample for sample in with_epochs(cold_starts(usable_samples(base))) if main_series(sample)]
    if base.projection is None or not samples:
        return []
    facts = merged_facts(usable_samples(base))
    columns = [_seconds(sample, base.projection.steps, facts) for sample in samples]
    seconds = {name: statistics.fmean(column[name] for column in columns) for name in columns[0]}
    seconds[WAITS] = base.projection.epoch_end_wait_seconds
    seconds |= _divided(seconds.pop(EPOCHS), samples, base.projection.steps)
    total = sum(seconds.values())
    parts = [
        WallTimePart(name=name, seconds=time, share=time / total, outside=name in OUTSIDE)
        for name, time in seconds.items()
        if time > 0
    ]
    return sorted(parts, key=lambda part: part.seconds, reverse=True)


def _seconds(sample: ProcessSample, steps: int, facts: Facts) -> dict[str, float]:
    """Return the seconds of each part by the figures of one process, and by the facts of all of them."""
    series, epochs = main_series(sample), Epochs.of(sample)
    mean = mean_step(series.blocks) if series else math.nan
    full_steps = max(0, steps - 1 - epochs.partials(steps))
    return {
        STEPS: full_steps * mean,
        START: sum(sample.phases.get(name, 0.0) for name in LAUNCH_PHASES if name != "data"),
        **_around_steps(sample, facts, max(0.0, warm_up_excess(sample, mean, full_steps))),
        VALIDATION: epochs.validation_seconds(steps),
        ASIDES: epochs.aside_seconds(steps),
        EPOCHS: epochs.seconds(steps) - epochs.validation_seconds(steps) - epochs.aside_seconds(steps),
    }


def _around_steps(sample: ProcessSample, facts: Facts, excess: float) -> dict[str, float]:
    """Return the seconds of preparing the data, building the model and tracing.

    In a script, data and model are prepared together, and other work may follow the training.

    Args:
        sample: a process.
        facts: of all processes.
        excess: seconds by which the steps of its warm-up took longer than later ones.
    """
    data, build = sample.phases.get("data", 0.0), sample.phases.get("build", 0.0)
    rest = excess + sum(sample.phases.get(name, 0.0) for name in BUILD_PHASES if name != "build")
    after = facts.after_steps
    if facts.before_steps is None:
        return {DATA: data, BUILD: build + rest}
    return {BEFORE: build, TRACING: rest, AFTER: after.seconds if after is not None else 0.0}


def _divided(seconds: float, samples: Sequence[ProcessSample], steps: int) -> dict[str, float]:
    """Divide the time between epochs into callbacks and the rest."""
    length = Epochs.of(samples[0]).length
    count = math.ceil(steps / length) if length else 0
    parts = {name: count * each for name, each in at_epoch_ends(samples)}
    if sum(parts.values()) > seconds:  # callbacks and the ends of epochs were timed in different epochs
        parts = {name: part * seconds / sum(parts.values()) for name, part in parts.items()}
    return {**parts, EPOCHS: seconds - sum(parts.values())}
