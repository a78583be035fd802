"""Two results side by side: which is faster, by how much, from which step on, and what else differs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from bench.analyse import stats
from bench.analyse.breakeven import break_even
from bench.analyse.comparable import axis, differences
from bench.analyse.samples import (
    RatioEstimator,
    StepEstimator,
    mean_ratio,
    mean_step,
    paired_contrast,
    phase_values,
    process_values,
    typical_ratio,
    typical_step,
    usable_samples,
)
from bench.analyse.verdict import needed, verdict
from bench.model.comparison import THRESHOLD, Comparison, Difference, PhaseDifference, Side, Unit
from bench.model.result import Interval, Result


def compare(base: Result, other: Result, threshold: float = THRESHOLD) -> Comparison:
    """Compares two results, fair or not: whoever shows it asks `unfair` first.

    Args:
        base: what the ratio is taken to.
        other: the one that is called faster or slower.
        threshold: relative difference that matters.
    """
    found = differences(base, other)
    unit, factor = unit_of(base, other)
    ratio, paired = step_ratio(base, other)
    ratio = _scaled(ratio, factor)
    word = verdict(ratio, threshold)
    labels = _labels(base, other, found)
    return Comparison(
        base=_side(base, labels[0]),
        other=_side(other, labels[1]),
        axis=axis(found),
        unit=unit,
        paired=paired,
        ratio=ratio,
        verdict=word,
        mean_ratio=_scaled(_ratio(base, other, mean_ratio, mean_step)[0], factor),
        threshold=threshold,
        needed_units=needed(ratio, threshold) if ratio is not None and word == "undecided" else None,
        phases=_phases(base, other, paired),
        break_even=break_even(base, other, paired, _unequal_examples(base, other)),
        differences=found,
    )


def step_ratio(base: Result, other: Result) -> tuple[Interval | None, bool]:
    """The other's step time over the base's, and whether it is paired within trials.

    Paired where the two took turns in two trials or more, which takes out the noise that both met; else from each
    side's processes on their own.
    """
    return _ratio(base, other, typical_ratio, typical_step)


def _ratio(base: Result, other: Result, paired: RatioEstimator, single: StepEstimator) -> tuple[Interval | None, bool]:
    contrast = paired_contrast(base, other, paired)
    if contrast is not None:
        return contrast.ratio(), True
    first, second = (list(process_values(r, single).values()) for r in (base, other))
    return stats.independent_ratio(first, second), False


def _scaled(ratio: Interval | None, factor: float) -> Interval | None:
    return None if ratio is None else stats.scaled(ratio, factor)


def _side(result: Result, label: str) -> Side:
    processes = len(usable_samples(result))
    return Side(id=result.id, label=label, processes=processes, step_seconds=result.summary.step_seconds)


def _labels(base: Result, other: Result, found: Sequence[Difference]) -> tuple[str, str]:
    """What the two are called: where that is the same, with what tells them apart, which of one spec are their ids."""
    first, second = base.spec.label, other.spec.label
    if first != second:
        return first, second
    axis = next((each for each in found if each.kind == "axis"), None)
    if axis is None:
        return f"{first} ({base.id[-8:]})", f"{second} ({other.id[-8:]})"
    return tuple(f"{first}, {axis.name} {_short(value)}" for value in (axis.base, axis.other))  # type: ignore[return-value]


def _short(value: object) -> str:
    """A value of a spec as a name holds it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict):
        return "+".join(map(str, dict.fromkeys(value.values())))
    return "as the program decides" if value is None else str(value)


def unit_of(base: Result, other: Result) -> tuple[Unit, float]:
    """What a ratio of two results is of, an example where their steps hold unequal numbers of them; and its factor."""
    examples = _unequal_examples(base, other)
    return ("example", examples[0] / examples[1]) if examples else ("step", 1.0)


def _unequal_examples(base: Result, other: Result) -> tuple[float, float] | None:
    """Examples of a step of each, where they differ; none where they are the same or a step has none."""
    first, second = examples_a_step(base), examples_a_step(other)
    return (first, second) if first and second and first != second else None


def examples_a_step(result: Result) -> float | None:
    """Examples of one step, where the workload has any."""
    step, rate = result.summary.step_seconds, result.summary.examples_per_second
    return round(rate * step.value, 6) if rate and step else None


def _phases(base: Result, other: Result, paired: bool) -> list[PhaseDifference]:
    first, second = (phase_values(usable_samples(r)) for r in (base, other))
    return [
        PhaseDifference(
            phase=phase,
            base=statistics.fmean(first[phase].values()),
            other=statistics.fmean(second[phase].values()),
            difference=stats.Contrast.of(first[phase], second[phase], paired).interval(),
        )
        for phase in first
        if phase in second
    ]
