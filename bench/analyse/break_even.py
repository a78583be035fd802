"""The break-even: the step from which the side with the faster steps is ahead, although it starts more slowly.

The time of a side after N steps is linear in N: the cost of its start plus N times its mean step. The sides are equal
at N = (difference of the starts) / (difference of the steps). Both differences are estimates, so the interval of N is
Fieller's.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from bench.analyse import stats
from bench.analyse.epoch_waits import steps_per_epoch
from bench.analyse.projection import project
from bench.analyse.samples import (
    cold_starts,
    mean_step,
    paired_contrast,
    process_values,
    start_seconds,
    usable_samples,
    warm_up_excess,
)
from bench.analyse.stats import Contrast
from bench.analyse.training_time import Epochs, epoch_seconds_per_step, with_epochs
from bench.model.comparison import BreakEven
from bench.model.interval import Interval
from bench.model.result import Result

ByTrial = Mapping[int, float]
"""Trial to seconds."""


def break_even(
    base: Result, other: Result, paired: bool, examples: tuple[float, float] | None = None
) -> BreakEven | None:
    """Return the break-even of two results of one workload.

    A start counts only if no other worker started meanwhile, so there may be fewer measured starts than measured steps.

    Args:
        base: the baseline.
        other: the other result.
        paired: whether the two were interleaved, so that trials form pairs.
        examples: examples per step of each side, if they differ. The break-even is then counted in examples. None if
            they are equal or unknown.

    Returns:
        None if either has no measured start or no steps.
    """
    # The number of steps of the other that hold as many examples as one step of the base.
    factor = examples[0] / examples[1] if examples else 1.0
    start_costs = [_start_costs(result) for result in (base, other)]
    starts = [cost() for cost in start_costs]
    steps = [_step_seconds(result) for result in (base, other)]
    if not (all(starts) and all(steps)):
        return None
    equal_steps = [steps[0], {trial: factor * seconds for trial, seconds in steps[1].items()}]
    cost = Contrast.of(starts[0], starts[1], paired)  # how much more the other's start costs
    gain = Contrast.of(equal_steps[1], equal_steps[0], paired)  # what the other saves with each step
    estimate = BreakEven(winner="none", start_seconds=cost.interval())
    _add_whole_training(estimate, base, other, factor)
    if gain.interval().may_be_zero and not (gain.n == 1 and _saves(gain, paired_contrast(base, other), factor)):
        return estimate
    estimate.winner = "other" if gain.mean > 0 else "base"
    linear = max(_linear_after(base), _linear_after(other) / factor)

    def costs(count: float) -> list[dict[int, float]]:
        """Return the cost of both starts, as far as it arises within `count` steps of the base."""
        return [start_costs[0](count), start_costs[1](count * factor)]

    def is_behind(count: float) -> bool:
        """Return whether the side with the faster steps is behind after `count` steps of the base."""
        first, second = costs(count)
        more = Contrast.of(first, second, paired).mean - gain.mean * count
        return more > 0 if gain.mean > 0 else more < 0

    if not is_behind(linear):
        if not is_behind(0.0):
            estimate.immediate = True
            estimate.start_uncertain = cost.interval().may_be_zero
            return estimate
        starts = costs(_last(is_behind, linear))  # the crossing lies within the warm-up or the first epoch
    covariance = _paired_covariance if paired else _independent_covariance
    crossing = fieller(Contrast.of(starts[0], starts[1], paired), gain, covariance(starts, equal_steps))
    if examples:
        estimate.examples = stats.scale(crossing, examples[0])
    else:
        estimate.steps = crossing
    length = steps_per_epoch(usable_samples(base)) or steps_per_epoch(usable_samples(other)) / factor
    estimate.epochs = stats.scale(crossing, 1 / length) if length else None
    return estimate


def _linear_after(result: Result) -> float:
    """Return the number of steps after which time is linear, because the warm-up and the first epoch are over."""
    samples = cold_starts(usable_samples(result))
    warm_ups = (sum(block.steps for series in s.series for block in series.warmup) for s in samples)
    return float(max([*warm_ups, steps_per_epoch(samples)], default=0))


def _last(is_behind: Callable[[float], bool], end: float) -> float:
    """Return the number of steps, from 0 to `end`, at which `is_behind` changes, found by bisection to within 1%."""
    start = 0.0
    while end - start > 0.01 * max(1.0, end):
        middle = (start + end) / 2
        start, end = (middle, end) if is_behind(middle) else (start, middle)
    return end


def _add_whole_training(estimate: BreakEven, base: Result, other: Result, factor: float) -> None:
    """Add the time of the whole training from a cold start, if its number of steps is known.

    Args:
        estimate: the break-even that receives it.
        base: the baseline.
        other: the other result.
        factor: steps of the other with as many examples as a step of the base. If it is 1, both times are for the same
            number of steps: the smaller of the two, because one training may stop by itself or set data aside for
            validation.
    """
    first, second = (result.projection.steps if result.projection else 0 for result in (base, other))
    if not first and not second:
        return
    steps = [first or max(1, round(second / factor)), second or max(1, round(first * factor))]
    if factor == 1:
        steps = [min(steps)] * 2
    trainings = [
        project(result, cold_starts(usable_samples(result)), count)
        for result, count in zip((base, other), steps, strict=True)
    ]
    if all(trainings):
        estimate.training_steps = steps[0] if steps[0] == steps[1] else None
        estimate.training_seconds = [training.total_seconds.value for training in trainings if training]


def _saves(gain: Contrast, ratio: Contrast | None, factor: float) -> bool:
    """Return whether the ratio of the typical steps confirms a saving per step that was measured in a single trial.

    Args:
        gain: seconds that the other saves with each step.
        ratio: logarithm of the ratio of the typical steps. None if the two were not interleaved.
        factor: steps of the other with as many examples as a step of the base.
    """
    if ratio is None:
        return False
    more = replace(ratio, mean=ratio.mean + math.log(factor))
    return not more.interval().may_be_zero and (more.mean < 0) == (gain.mean > 0)


def fieller(above: Contrast, below: Contrast, covariance: float) -> Interval:
    """Return the interval of a ratio of two means (E. C. Fieller, 1954).

    Args:
        above: the numerator.
        below: the denominator, known to differ from 0.
        covariance: covariance of the two means.

    Returns:
        The ratio with its 95% interval. A negative bound is 0, because steps are counted from the start. There are no
        bounds if the variance of either mean is unknown. There is no upper bound if the denominator may be 0.
    """
    ratio = above.mean / below.mean
    if not (above.is_known and below.is_known):
        return Interval(value=ratio, n=min(above.n, below.n))
    t = min(above, below, key=lambda contrast: contrast.freedom).quantile()
    g = t * t * below.variance / below.mean**2
    if g >= 1:  # the interval of the denominator at this quantile contains 0
        least = max(0.0, math.copysign(1.0, below.mean) * above.mean - t * math.sqrt(above.variance))
        most = abs(below.mean) + t * math.sqrt(below.variance)
        return Interval(value=ratio, low=least / most, high=None, n=min(above.n, below.n))
    centre = (ratio - g * covariance / below.variance) / (1 - g) if below.variance else ratio
    discriminant = above.variance - 2 * ratio * covariance + ratio**2 * below.variance
    if below.variance:
        discriminant -= g * (above.variance - covariance**2 / below.variance)
    half = t / (abs(below.mean) * (1 - g)) * math.sqrt(max(0.0, discriminant))
    return Interval(value=ratio, low=max(0.0, centre - half), high=centre + half, n=min(above.n, below.n))


def _start_costs(result: Result) -> Callable[..., dict[int, float]]:
    """Return a function that returns the cost of a start in seconds, by trial.

    The cost is the cold start plus the extra time of early steps. The function takes the number of steps that count and
    leaves out the extra time of later ones. Default: all.
    """
    means = process_values(result, mean_step)
    samples = [s for s in with_epochs(cold_starts(usable_samples(result))) if s.trial in means]
    starts, epochs = start_seconds(samples), {sample.trial: Epochs.of(sample) for sample in samples}

    def costs(steps: float = math.inf) -> dict[int, float]:
        seconds = {}
        for sample in samples:
            trial = sample.trial
            excess = epochs[trial].first_excess() if steps >= epochs[trial].length else 0.0
            seconds[trial] = starts[trial] + warm_up_excess(sample, means[trial], steps) + excess
        return seconds

    return costs


def _step_seconds(result: Result) -> dict[int, float]:
    """Return the mean seconds per step of a long training, including what its epochs add, by trial."""
    added = epoch_seconds_per_step(usable_samples(result))
    return {trial: seconds + added for trial, seconds in process_values(result, mean_step).items()}


def _paired_covariance(starts: Sequence[ByTrial], steps: Sequence[ByTrial]) -> float:
    """Return the covariance of the mean difference of starts and the mean saving per step, paired by trial.

    The trials with measured starts are a subset of the trials with steps. So the covariance within trials is divided by
    the number of trials with steps. It is 0 if fewer than two trials have both starts.
    """
    trials, count = sorted(starts[0].keys() & starts[1].keys()), len(steps[0].keys() & steps[1].keys())
    if len(trials) < 2:
        return 0.0
    costs, gains = ([x[1][trial] - x[0][trial] for trial in trials] for x in (starts, steps))
    return -statistics.covariance(costs, gains) / count


def _independent_covariance(starts: Sequence[ByTrial], steps: Sequence[ByTrial]) -> float:
    """Return the same covariance for sides that were not interleaved: the sum of the covariances within each side."""
    return -sum(
        statistics.covariance(list(start.values()), [step[trial] for trial in start]) / len(step)
        for start, step in zip(starts, steps, strict=True)
        if len(start) > 1
    )
