"""The comparison of two results: which is faster, by how much, from which step on, and what else differs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from bench.analyse import stats
from bench.analyse.break_even import break_even
from bench.analyse.comparable import axis, differences
from bench.analyse.epoch_ratio import epoch_ratio
from bench.analyse.samples import (
    StepEstimator,
    epoch_examples_per_step,
    mean_ratio,
    mean_step,
    paired_contrast,
    phase_values,
    process_values,
    typical_step,
    usable_samples,
)
from bench.analyse.verdict import units_for_verdict, verdict
from bench.model.comparison import THRESHOLD, Comparison, Difference, PhaseDifference, Side, Unit
from bench.model.interval import Interval
from bench.model.result import Result


def compare(base: Result, other: Result, threshold: float = THRESHOLD, trainings: bool = True) -> Comparison:
    """Compare two results, fair or not. Check `Comparison.unfair` before you show the verdict.

    Args:
        base: the baseline.
        other: the result that is called faster or slower.
        threshold: smallest relative difference that matters, as a share.
        trainings: whether to compute the break-even, which takes most of the time of a comparison.
    """
    diffs = differences(base, other)
    unit, factor = unit_of(base, other)
    contrast = paired_contrast(base, other)
    paired = contrast is not None
    ratio = _scale(_ratio(base, other, contrast, typical_step), factor)
    failed = base.failure is not None or other.failure is not None  # what it measured before gives no verdict
    word = "not enough data" if failed else verdict(ratio, threshold)
    needed = None
    if ratio is not None and word == "undecided":
        prior_freedom = contrast.prior_freedom if contrast is not None else 0.0
        needed = units_for_verdict(ratio, threshold, prior_freedom, None if paired else _freedom(base, other))
    by_mean = _scale(_ratio(base, other, paired_contrast(base, other, mean_ratio), mean_step), factor)
    by_epochs = _scale(epoch_ratio(base, other), epoch_factor(base, other))
    labels = _labels(base, other, diffs)
    return Comparison(
        base=_side(base, labels[0]),
        other=_side(other, labels[1]),
        axis=axis(diffs),
        unit=unit,
        paired=paired,
        ratio=ratio,
        verdict=word,
        mean_ratio=by_mean,
        mean_verdict="not enough data" if failed else verdict(by_mean, threshold),
        epoch_ratio=by_epochs,
        epoch_verdict="not enough data" if failed else verdict(by_epochs, threshold),
        threshold=threshold,
        needed_units=needed,
        phases=_phases(base, other, paired),
        break_even=break_even(base, other, paired, _unequal_examples(base, other))
        if trainings and not failed
        else None,
        differences=diffs,
    )


def time_ratio(base: Result, other: Result) -> Interval | None:
    """Return the other's time over the base's, per unit (`unit_of`). None if a side has no step times.

    It is paired within trials if the two were interleaved, which cancels the noise that both met. Otherwise it is
    computed from each side's processes on their own.
    """
    _, factor = unit_of(base, other)
    return _scale(_ratio(base, other, paired_contrast(base, other), typical_step), factor)


def _ratio(base: Result, other: Result, paired: stats.Contrast | None, single: StepEstimator) -> Interval | None:
    if paired is not None:
        return paired.ratio()
    first, second = (list(process_values(result, single).values()) for result in (base, other))
    return stats.independent_ratio(first, second)


def _freedom(base: Result, other: Result) -> float:
    """Return the degrees of freedom of Welch's interval of the ratio."""
    sides = [process_values(result, typical_step).values() for result in (base, other)]
    first, second = ([math.log(seconds) for seconds in side] for side in sides)
    return stats.Contrast.independent(first, second).freedom


def _scale(ratio: Interval | None, factor: float) -> Interval | None:
    return None if ratio is None else stats.scale(ratio, factor)


def _side(result: Result, label: str) -> Side:
    processes = len(usable_samples(result))
    step, failure = result.summary.step_seconds, result.failure.brief if result.failure else None
    return Side(id=result.id, label=label, processes=processes, step_seconds=step, failure=failure)


def _labels(base: Result, other: Result, diffs: Sequence[Difference]) -> tuple[str, str]:
    """Return the labels of the two results. If they are equal, the value of the axis or the end of the id is added."""
    first, second = base.spec.label, other.spec.label
    if first != second:
        return first, second
    difference = next((difference for difference in diffs if difference.kind == "axis"), None)
    if difference is None:
        return f"{first} ({base.id[-8:]})", f"{second} ({other.id[-8:]})"
    name = difference.name
    return f"{first}, {name} {_value_text(difference.base)}", f"{second}, {name} {_value_text(difference.other)}"


def _value_text(value: object) -> str:
    """Return a value of a spec as part of a label."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict):
        return "+".join(map(str, dict.fromkeys(value.values())))
    return "as the program decides" if value is None else str(value)


def unit_of(base: Result, other: Result) -> tuple[Unit, float]:
    """Return the unit of a ratio, and the factor from a ratio per step to it.

    The unit is an example if steps of the two hold different numbers of examples, else a step.
    """
    examples = _unequal_examples(base, other)
    return ("example", examples[0] / examples[1]) if examples else ("step", 1.0)


def epoch_factor(base: Result, other: Result) -> float:
    """Return the factor from a ratio per step over whole epochs to the unit of the comparison (`unit_of`)."""
    examples = _unequal_examples(base, other)
    if examples is None:
        return 1.0
    first, second = (
        epoch_examples_per_step(result.spec, full, usable_samples(result))
        for result, full in zip((base, other), examples, strict=True)
    )
    return first / second


def _unequal_examples(base: Result, other: Result) -> tuple[float, float] | None:
    """Return the examples of a step of each; None if they are equal or a step has none."""
    first, second = examples_of_step(base), examples_of_step(other)
    return (first, second) if first and second and first != second else None


def examples_of_step(result: Result) -> float | None:
    """Return the examples of one step; None if the workload has none."""
    step, rate = result.summary.step_seconds, result.summary.examples_per_second
    return round(rate * step.value, 6) if rate and step else None


def _phases(base: Result, other: Result, paired: bool) -> list[PhaseDifference]:
    first, second = (phase_values(usable_samples(result)) for result in (base, other))
    differences = {
        phase: stats.Contrast.of(first[phase], second[phase], paired).interval() for phase in first if phase in second
    }
    return [
        PhaseDifference(
            phase=phase,
            base=statistics.fmean(first[phase].values()),
            other=statistics.fmean(second[phase].values()),
            difference=difference,
            measurable=not difference.may_be_zero,
        )
        for phase, difference in differences.items()
    ]
