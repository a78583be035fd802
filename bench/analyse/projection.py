"""The projection: how long the whole training takes, estimated from measured phases and steps."""

from __future__ import annotations

from collections.abc import Sequence

from bench.analyse import stats
from bench.analyse.epoch_waits import add_waits, steps_per_epoch
from bench.analyse.samples import main_series, mean_step, warm_up_excess
from bench.analyse.warnings import add_warning
from bench.model.interval import Interval
from bench.model.phase import BUILD_PHASES, LAUNCH_PHASES
from bench.model.result import Projection, Result
from bench.model.sample import FullTraining, ProcessSample

LONG_END_SECONDS = 1.0
"""Shortest pause at the end of an epoch that is reported, if it is also several times as long as usual."""


def project(result: Result, samples: Sequence[ProcessSample], total: int) -> Projection:
    """Return the time of the whole training, from each process's own phases and its own mean step.

    Build, preparation, tracing, first step and warm-up count as measured, the other steps at the mean of the steady
    blocks. An epoch's end and its partial batch count once per epoch. Waits at the ends of epochs count as often as
    short epochs waited (`bench.analyse.epoch_waits`).

    Args:
        result: with its summary; a whole training that was measured is kept.
        samples: processes whose cold start was measured.
        total: steps of the training.
    """
    build_and_fit, from_start = [], []
    for sample in samples:
        series = main_series(sample)
        if series is None:
            continue
        phases, epoch = sample.phases, sample.facts.epoch
        mean = mean_step(series.blocks)
        per_epoch = steps_per_epoch([sample])
        passes = total / per_epoch if per_epoch else 0
        partial = phases.get("partial_batch") if epoch and epoch.remainder else None
        full_steps = total - (passes if partial is not None else 0)
        excess = warm_up_excess(sample, mean) if sum(b.steps for b in series.warmup) < full_steps else 0.0
        seconds = sum(phases.get(name, 0.0) for name in BUILD_PHASES)
        seconds += max(0.0, full_steps - 1) * mean + excess
        if partial is not None:
            seconds += partial + (passes - 1) * phases.get("partial_batch_again", partial)
        seconds += max(0.0, passes - 1) * phases.get("epoch_end", 0.0)
        build_and_fit.append(seconds)
        from_start.append(seconds + sum(phases.get(name, 0.0) for name in LAUNCH_PHASES))
    step = result.summary.step_seconds_mean
    (build_and_fit_seconds, waits), (total_seconds, _) = (
        add_waits(stats.arithmetic(seconds), samples, total, step.value if step else 0.0)
        for seconds in (build_and_fit, from_start)
    )
    return Projection(
        steps=total,
        build_and_fit_seconds=build_and_fit_seconds,
        total_seconds=total_seconds,
        epoch_end_wait_seconds=waits,
        cost=result.price.per_hour / 3600 * total_seconds.value if result.price else None,
        full_training=result.projection.full_training if result.projection else None,
    )


def add_full_training(result: Result, training: FullTraining) -> None:
    """Add a measured training to a result's projection, with a warning if it paused at the ends of its epochs."""
    projection = result.projection
    if projection is None:
        projection = result.projection = Projection(
            steps=training.steps,
            build_and_fit_seconds=Interval(value=training.build_and_fit_seconds),
            total_seconds=Interval(value=training.total_seconds),
        )
    projection.full_training = training
    end = result.summary.phases.get("epoch_end")
    usual = end.value if end else 0.0
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
