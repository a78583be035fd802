"""The projection: how long the whole training takes, estimated from measured phases and steps."""

from __future__ import annotations

from collections.abc import Sequence

from bench.analyse import stats
from bench.analyse.epoch_waits import add_waits
from bench.analyse.samples import cold_starts, process_blocks, usable_samples
from bench.analyse.training_time import build_and_fit_seconds, launch_seconds, with_epochs
from bench.analyse.warnings import add_warning
from bench.model.interval import Interval
from bench.model.result import Projection, Result
from bench.model.sample import FullTraining, ProcessSample

LONG_END_SECONDS = 1.0
"""Shortest pause at the end of an epoch that is reported, if it is also several times as long as usual."""


def project(
    result: Result, samples: Sequence[ProcessSample], total: int, planned: int | None = None
) -> Projection | None:
    """Return the time of the whole training, from each process's own phases and its own mean step.

    `bench.analyse.training_time` computes the time of each process. Waits at the ends of epochs are added as often as
    short epochs waited (`bench.analyse.epoch_waits`).

    Args:
        result: the result, with its summary. A measured training in its projection is kept.
        samples: processes whose cold start was measured.
        total: steps of the training.
        planned: steps that the program planned. None if they are not known.

    Returns:
        None if no process has valid step times.
    """
    valid = process_blocks(result)
    timed = [sample for sample in with_epochs(samples) if sample.trial in valid]
    if not timed:
        return None
    fits = [build_and_fit_seconds(sample, total) for sample in timed]
    totals = [seconds + launch_seconds(sample) for seconds, sample in zip(fits, timed, strict=True)]
    step = result.summary.step_seconds_mean
    (build_and_fit, waits), (from_start, _) = (
        add_waits(stats.arithmetic(seconds), samples, total, step.value if step else 0.0) for seconds in (fits, totals)
    )
    return Projection(
        steps=total,
        planned_steps=planned,
        build_and_fit_seconds=build_and_fit,
        total_seconds=from_start,
        epoch_end_wait_seconds=waits,
        cost=result.price.per_hour / 3600 * from_start.value if result.price else None,
        full_training=result.projection.full_training if result.projection else None,
    )


def add_full_training(result: Result, training: FullTraining) -> None:
    """Add a measured training to a result, with a warning if it paused at the ends of its epochs.

    The projection is computed anew for the steps that the training ran, so that both are about the same training.
    """
    samples = cold_starts(usable_samples(result))
    projection = project(result, samples, training.steps, training.planned_steps) or Projection(
        steps=training.steps,
        build_and_fit_seconds=Interval(value=training.build_and_fit_seconds),
        total_seconds=Interval(value=training.total_seconds),
    )
    result.projection = projection
    projection.full_training = training
    phases = result.summary.phases
    usual = sum(phases[name].value for name in ("epoch_end", "validation", "epoch_start") if name in phases)
    waits = [seconds - usual for seconds in training.epoch_ends if seconds > max(LONG_END_SECONDS, 4 * usual)]
    if not waits:
        return
    rest = training.build_and_fit_seconds - sum(waits)
    deviation = (projection.build_and_fit_seconds.value - projection.epoch_end_wait_seconds) / rest - 1
    add_warning(
        result,
        "epoch-end",
        f"the training waited {sum(waits):.1f} s at {len(waits)} of {len(training.epoch_ends)} ends of epochs, "
        f"where {projection.epoch_end_wait_seconds:.1f} s were projected; without these random waits it took "
        f"{rest:.0f} s (projected {deviation:+.1%})",
        "Set `autotune.enabled = False` in the options of the dataset. Otherwise tf.data may wait for its autotuning "
        "thread, which wakes up after 10 ms and then after twice as long each time, up to a minute.",
    )
