"""From which step on the one that starts slower but runs faster is ahead, counted from a cold start.

Each side's whole time after N steps is a line: what its start costs, and N steps at its mean. Where the lines
cross, N is a ratio of two differences, each known with an error.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from bench.analyse import epochs, stats
from bench.analyse.stats import Contrast
from bench.result import Interval, Record, Result

START = ("interpreter", "import", "device_init", "data", "build", "prepare", "trace", "first_step")
"""The phases that a program goes through before its second step."""


class BreakEven(Record):
    """Where two cold starts meet."""

    winner: Literal["base", "other", "none"] = Field(
        description="who is ahead in the long run; none where their steps are not known to differ"
    )
    at_once: bool = Field(False, description="the winner in the long run starts no slower either")
    start_unsure: bool = Field(False, description="that may be noise: the starts are not known to differ")
    steps: Interval | None = Field(
        None, description="steps after which the winner is ahead; high is none where it may never be"
    )
    epochs: Interval | None = Field(None, description="the same in passes over the data, where their length is known")
    training_steps: int | None = Field(None, description="steps of the workload's whole training")
    start_seconds: Interval | None = Field(None, description="the other's start less the base's")
    training_seconds: list[float] = Field(default_factory=list, description="whole cold training of base and other")


def break_even(base: Result, other: Result, paired: bool) -> BreakEven | None:
    """The break-even of two results of one workload; none where either lacks starts or steps.

    Args:
        base: one of them.
        other: the other.
        paired: whether the two took turns, so that cohorts pair.
    """
    starts, steps = zip(*(_lines(r) for r in (base, other)), strict=True)
    if not (starts[0] and starts[1]):
        return None
    cohorts = sorted(starts[0].keys() & starts[1].keys()) if paired else []
    keys = [cohorts, cohorts] if len(cohorts) > 1 else [sorted(s) for s in starts]
    start, step = ([[side[k] for k in chosen] for side, chosen in zip(x, keys, strict=True)] for x in (starts, steps))
    contrast = Contrast.paired if len(cohorts) > 1 else Contrast.independent
    gain = contrast(step[1], step[0])  # what the other saves each step
    cost = contrast(start[0], start[1])  # what its start costs more
    found = BreakEven(winner="none", start_seconds=cost.interval(), training_steps=_steps(base) or _steps(other))
    if found.training_steps:
        rest = max(0, found.training_steps - 1)
        found.training_seconds = [
            statistics.fmean(a) + rest * statistics.fmean(b) for a, b in zip(start, step, strict=True)
        ]
    saved = gain.interval()
    if saved.low is None or saved.high is None or saved.low <= 0 <= saved.high:
        return found
    found.winner = "other" if gain.mean > 0 else "base"
    if (cost.mean <= 0) == (gain.mean > 0):
        found.at_once = True
        more = cost.interval()
        if more.low is not None and more.high is not None and more.low <= 0 <= more.high:
            found.start_unsure = True
        return found
    covariance = (_covariance if len(cohorts) > 1 else _covariance_apart)(start, step)
    found.steps = fieller(cost, gain, covariance)
    length = epochs.steps(stats.usable(base)) or epochs.steps(stats.usable(other))
    found.epochs = stats.scaled(found.steps, 1 / length) if length else None
    return found


def fieller(above: Contrast, below: Contrast, covariance: float) -> Interval:
    """Interval of a ratio of two means (E. C. Fieller, 1954), `below` known to differ from 0.

    Args:
        above: the ratio's numerator.
        below: its denominator.
        covariance: of the two means.

    Returns:
        The ratio; bounds below 0 are 0, since steps are counted from the start.
    """
    ratio = above.mean / below.mean
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


def _lines(result: Result) -> tuple[dict[int, float], dict[int, float]]:
    """Cohort: seconds from the interpreter's start to the first step's end; cohort: seconds of a mean step."""
    starts, steps = {}, {}
    for sample in stats.started_alone(stats.usable(result)):
        series = stats.main_series(sample)
        if series is None:
            continue
        mean = stats.mean(series.blocks)
        if not 0 < mean < math.inf:
            continue
        starts[sample.cohort] = sum(sample.phases.get(name, 0.0) for name in START) + stats.warm_up_extra(sample, mean)
        steps[sample.cohort] = mean
    return starts, steps


def _covariance(start: Sequence[Sequence[float]], step: Sequence[Sequence[float]]) -> float:
    """Of the mean difference of starts and the mean saving a step, paired by cohort."""
    costs = [b - a for a, b in zip(*start, strict=True)]
    gains = [a - b for a, b in zip(*step, strict=True)]
    return statistics.covariance(costs, gains) / len(costs)


def _covariance_apart(start: Sequence[Sequence[float]], step: Sequence[Sequence[float]]) -> float:
    """The same where the sides were measured apart: each side's own processes still tie its start to its step."""
    return -sum(statistics.covariance(a, b) / len(a) for a, b in zip(start, step, strict=True) if len(a) > 1)


def _steps(result: Result) -> int | None:
    return result.projection.steps if result.projection else None
