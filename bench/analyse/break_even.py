"""The break-even: from which step on the side that starts more slowly but runs faster is ahead, from a cold start.

The time of each side after N steps is a line: the cost of its start, plus N steps at its mean. The lines cross where N
is a ratio of two differences, each of which is an estimate.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from bench.analyse import stats
from bench.analyse.epoch_waits import steps_per_epoch
from bench.analyse.samples import (
    cold_starts,
    mean_step,
    process_values,
    start_seconds,
    usable_samples,
    warm_up_excess,
)
from bench.analyse.stats import Contrast
from bench.model.comparison import BreakEven
from bench.model.interval import Interval
from bench.model.result import Result

ByTrial = Mapping[int, float]
"""Trial to seconds."""


def break_even(
    base: Result, other: Result, paired: bool, examples: tuple[float, float] | None = None
) -> BreakEven | None:
    """Return the break-even of two results of one workload.

    Fewer processes have a measured start than measured steps: a start counts only if no other worker started meanwhile.

    Args:
        base: the baseline.
        other: the other result.
        paired: whether the two were interleaved, so that trials form pairs.
        examples: examples of a step of each, if they differ. Examples are then counted instead of steps.

    Returns:
        None if either has no measured start or no steps.
    """
    factor = examples[0] / examples[1] if examples else 1.0  # steps of the other for the examples of a step of the base
    starts = [_start_seconds(result) for result in (base, other)]
    steps = [process_values(result, mean_step) for result in (base, other)]
    if not (all(starts) and all(steps)):
        return None
    equal_steps = [steps[0], {trial: factor * seconds for trial, seconds in steps[1].items()}]
    cost = Contrast.of(starts[0], starts[1], paired)  # what the other's start costs more
    gain = Contrast.of(equal_steps[1], equal_steps[0], paired)  # what the other saves with each step
    estimate = BreakEven(winner="none", start_seconds=cost.interval())
    _add_whole_training(estimate, (base, other), starts, steps)
    if gain.interval().may_be_zero:
        return estimate
    estimate.winner = "other" if gain.mean > 0 else "base"
    if (cost.mean <= 0) == (gain.mean > 0):
        estimate.immediate = True
        estimate.start_uncertain = cost.interval().may_be_zero
        return estimate
    crossing = fieller(cost, gain, (_paired_covariance if paired else _independent_covariance)(starts, equal_steps))
    if examples:
        estimate.examples = stats.scale(crossing, examples[0])
    else:
        estimate.steps = crossing
    length = steps_per_epoch(usable_samples(base)) or factor * steps_per_epoch(usable_samples(other))
    estimate.epochs = stats.scale(crossing, 1 / length) if length else None
    return estimate


def _add_whole_training(
    estimate: BreakEven, results: Sequence[Result], starts: Sequence[ByTrial], steps: Sequence[ByTrial]
) -> None:
    """Add the time of the whole training from a cold start, if its number of steps is known."""
    counts = [result.projection.steps if result.projection else None for result in results]
    totals = [count or next(filter(None, counts), 0) for count in counts]
    if all(totals):
        estimate.training_steps = totals[0] if totals[0] == totals[1] else None
        estimate.training_seconds = [
            statistics.fmean(start.values()) + max(0, count - 1) * statistics.fmean(step.values())
            for count, start, step in zip(totals, starts, steps, strict=True)
        ]


def fieller(above: Contrast, below: Contrast, covariance: float) -> Interval:
    """Return the interval of a ratio of two means (E. C. Fieller, 1954).

    Args:
        above: the numerator.
        below: the denominator, known to differ from 0.
        covariance: covariance of the two means.

    Returns:
        The ratio. Bounds below 0 are 0, since steps are counted from the start. Without bounds if the numerator is a
        single value, and without an upper bound if there may be none.
    """
    ratio = above.mean / below.mean
    if above.n < 2:
        return Interval(value=ratio, n=above.n)
    t = min(above, below, key=lambda contrast: contrast.freedom).quantile()
    g = t * t * below.variance / below.mean**2
    if g >= 1:  # at the common quantile the denominator may be 0, so there is no upper bound
        least = max(0.0, above.mean - t * math.sqrt(above.variance)) if below.mean > 0 else 0.0
        most = abs(below.mean) + t * math.sqrt(below.variance)
        return Interval(value=ratio, low=least / most, high=None, n=min(above.n, below.n))
    centre = (ratio - g * covariance / below.variance) / (1 - g) if below.variance else ratio
    discriminant = above.variance - 2 * ratio * covariance + ratio**2 * below.variance
    if below.variance:
        discriminant -= g * (above.variance - covariance**2 / below.variance)
    half = t / (abs(below.mean) * (1 - g)) * math.sqrt(max(0.0, discriminant))
    return Interval(value=ratio, low=max(0.0, centre - half), high=centre + half, n=min(above.n, below.n))


def _start_seconds(result: Result) -> dict[int, float]:
    """Return trial to the seconds until the end of the first step, plus what the warm-up took beyond its steps."""
    means, samples = process_values(result, mean_step), cold_starts(usable_samples(result))
    starts = start_seconds(samples)
    return {
        sample.trial: starts[sample.trial] + warm_up_excess(sample, means[sample.trial])
        for sample in samples
        if sample.trial in means
    }


def _paired_covariance(starts: Sequence[ByTrial], steps: Sequence[ByTrial]) -> float:
    """Return the covariance of the mean difference of starts and the mean saving per step, paired by trial.

    Starts are averaged over some of the trials that steps are averaged over, so the covariance of a trial is divided by
    the number of trials with steps.
    """
    trials, count = sorted(starts[0].keys() & starts[1].keys()), len(steps[0].keys() & steps[1].keys())
    if len(trials) < 2:
        return 0.0
    costs, gains = ([x[1][trial] - x[0][trial] for trial in trials] for x in (starts, steps))
    return -statistics.covariance(costs, gains) / count


def _independent_covariance(starts: Sequence[ByTrial], steps: Sequence[ByTrial]) -> float:
    """Return the same covariance for sides that were not interleaved: that of each side within its own processes."""
    return -sum(
        statistics.covariance(list(start.values()), [step[trial] for trial in start]) / len(step)
        for start, step in zip(starts, steps, strict=True)
        if len(start) > 1
    )
