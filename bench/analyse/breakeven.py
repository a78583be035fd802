"""From which step on the one that starts slower but runs faster is ahead, counted from a cold start.

Each side's whole time after N steps is a line: what its start costs, and N steps at its mean. Where the lines
cross, N is a ratio of two differences, each known with an error.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from bench.analyse import stats
from bench.analyse.epoch_waits import steps_per_epoch
from bench.analyse.samples import cold_starts, mean_step, process_values, usable_samples, warm_up_excess
from bench.analyse.stats import Contrast
from bench.model.comparison import BreakEven
from bench.model.result import START_PHASES, Interval, Result

ByTrial = Mapping[int, float]


def break_even(
    base: Result, other: Result, paired: bool, examples: tuple[float, float] | None = None
) -> BreakEven | None:
    """The break-even of two results of one workload; none where either lacks starts or steps.

    Starts are known of fewer processes than steps are: those that nobody else started beside.

    Args:
        base: one of them.
        other: the other.
        paired: whether the two took turns, so that trials pair.
        examples: of a step of each, where they differ, so that not steps but examples are counted.
    """
    worth = examples[0] / examples[1] if examples else 1.0  # the other's steps for as many examples as a base's step
    starts = [_starts(r) for r in (base, other)]
    steps = [process_values(r, mean_step) for r in (base, other)]
    if not (all(starts) and all(steps)):
        return None
    equal = [steps[0], {trial: worth * seconds for trial, seconds in steps[1].items()}]
    cost = Contrast.of(starts[0], starts[1], paired)  # what the other's start costs more
    gain = Contrast.of(equal[1], equal[0], paired)  # what it saves each step
    found = BreakEven(winner="none", start_seconds=cost.interval())
    _whole_training(found, (base, other), starts, steps)
    saved = gain.interval()
    if saved.low is None or saved.high is None or saved.low <= 0 <= saved.high:
        return found
    found.winner = "other" if gain.mean > 0 else "base"
    if (cost.mean <= 0) == (gain.mean > 0):
        found.immediate = True
        more = cost.interval()
        found.start_uncertain = more.low is None or more.high is None or more.low <= 0 <= more.high
        return found
    after = fieller(cost, gain, (_covariance if paired else _covariance_apart)(starts, equal))
    if examples:
        found.examples = stats.scaled(after, examples[0])
    else:
        found.steps = after
    length = steps_per_epoch(usable_samples(base)) or worth * steps_per_epoch(usable_samples(other))
    found.epochs = stats.scaled(after, 1 / length) if length else None
    return found


def _whole_training(
    found: BreakEven,
    results: Sequence[Result],
    starts: Sequence[ByTrial],
    steps: Sequence[ByTrial],
) -> None:
    """What the whole training takes from a cold start, where it is known how many steps that is."""
    counts = [_steps(each) for each in results]
    known = [count or next(filter(None, counts), 0) for count in counts]
    if all(known):
        found.training_steps = known[0] if known[0] == known[1] else None
        found.training_seconds = [
            statistics.fmean(start.values()) + max(0, count - 1) * statistics.fmean(step.values())
            for count, start, step in zip(known, starts, steps, strict=True)
        ]


def fieller(above: Contrast, below: Contrast, covariance: float) -> Interval:
    """Interval of a ratio of two means (E. C. Fieller, 1954), `below` known to differ from 0.

    Args:
        above: the ratio's numerator.
        below: its denominator.
        covariance: of the two means.

    Returns:
        The ratio; bounds below 0 are 0, since steps are counted from the start; none where the numerator is one value.
    """
    ratio = above.mean / below.mean
    if above.n < 2:
        return Interval(value=ratio, n=above.n)
    t = min(above, below, key=lambda d: d.freedom).quantile()
    g = t * t * below.variance / below.mean**2
    if g >= 1:  # by the quantile of both together the denominator may be 0, so there is no upper bound
        least = max(0.0, above.mean - t * math.sqrt(above.variance)) if below.mean > 0 else 0.0
        most = abs(below.mean) + t * math.sqrt(below.variance)
        return Interval(value=ratio, low=least / most, high=None, n=min(above.n, below.n))
    centre = (ratio - g * covariance / below.variance) / (1 - g) if below.variance else ratio
    inside = above.variance - 2 * ratio * covariance + ratio**2 * below.variance
    if below.variance:
        inside -= g * (above.variance - covariance**2 / below.variance)
    half = t / (abs(below.mean) * (1 - g)) * math.sqrt(max(0.0, inside))
    return Interval(value=ratio, low=max(0.0, centre - half), high=centre + half, n=min(above.n, below.n))


def _starts(result: Result) -> dict[int, float]:
    """Trial: seconds from the interpreter's start to the first step's end, and what warm-up took beyond its steps."""
    means = process_values(result, mean_step)
    return {
        sample.trial: sum(sample.phases.get(name, 0.0) for name in START_PHASES)
        + warm_up_excess(sample, means[sample.trial])
        for sample in cold_starts(usable_samples(result))
        if sample.trial in means
    }


def _covariance(starts: Sequence[ByTrial], steps: Sequence[ByTrial]) -> float:
    """Of the mean difference of starts and the mean saving a step, paired by trial.

    The one is a mean over some of the trials that the other is a mean over, so what ties a trial's start to its step
    counts as often as there are trials of the latter.
    """
    trials, of = sorted(starts[0].keys() & starts[1].keys()), len(steps[0].keys() & steps[1].keys())
    if len(trials) < 2:
        return 0.0
    costs, gains = ([x[1][c] - x[0][c] for c in trials] for x in (starts, steps))
    return -statistics.covariance(costs, gains) / of


def _covariance_apart(starts: Sequence[ByTrial], steps: Sequence[ByTrial]) -> float:
    """The same where the sides were measured apart: each side's own processes still tie its start to its step."""
    return -sum(
        statistics.covariance(list(start.values()), [step[trial] for trial in start]) / len(step)
        for start, step in zip(starts, steps, strict=True)
        if len(start) > 1
    )


def _steps(result: Result) -> int | None:
    return result.projection.steps if result.projection else None
