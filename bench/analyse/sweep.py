"""What a sweep shows: a curve per backend, environment or loop, where one overtakes another, where memory ran out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from bench.analyse import stats
from bench.analyse.compare import time_ratio, unit_of
from bench.analyse.pairing import pairs_within_group
from bench.analyse.verdict import verdict
from bench.analyse.warnings import DISTURBANCES
from bench.model.interval import Interval
from bench.model.result import Result, ResultWarning, Summary
from bench.model.sweep import Crossing, Curve, CurveRatio, Point, Sweep, rising

DISTURBED = (*DISTURBANCES, "shared-gpu", "not-interleaved")
"""Keys of the warnings about disturbances, because of which the results of a study may not be comparable."""


def sweep_of(results: Sequence[Result], threshold: float) -> Sweep:
    """Return the curves of a sweep, with their ratios and crossings.

    Args:
        results: those of all points of one sweep, at least one.
        threshold: smallest relative difference that matters.
    """
    axes = swept_axes(results)
    by_curve: dict[str, list[Result]] = {}
    for result in sorted(results, key=lambda r: rising(_values(r, axes))):
        by_curve.setdefault(curve_label(result), []).append(result)
    names = list(dict.fromkeys(curve_label(result) for result in results))
    curves = [Curve(label=name, points=[_point(result, axes) for result in by_curve[name]]) for name in names]
    bases = {curve_label(other): curve_label(base) for base, other in pairs_within_group(first_points(results))}
    for curve in curves:
        curve.best = _best(curve)
        curve.base = bases.get(curve.label)
        if curve.base is None:
            continue
        base = {_values(result, axes): result for result in by_curve[curve.base]}
        curve.ratios = _ratios(base, by_curve[curve.label], axes, threshold)
        if len(axes) == 1 and is_ordered(curve, axes[0]):
            curve.crossings = crossings(axes[0], curve)
    reasons = (result.sweep.incomplete_reason for result in reversed(results) if result.sweep is not None)
    return Sweep(
        id=results[0].parent or "",
        workload=results[0].spec.workload,
        axes={name: sorted({r.spec.params[name] for r in results}, key=lambda value: rising([value])) for name in axes},
        threshold=threshold,
        curves=curves,
        warnings=disturbances(results),
        incomplete_reason=next(filter(None, reasons), None),
    )


def swept_axes(results: Sequence[Result]) -> list[str]:
    """Return the swept parameters. If the results do not name them, return those that differ."""
    if results[0].sweep is not None:
        return results[0].sweep.axes
    names = dict.fromkeys(name for result in results for name in result.spec.params)
    return [name for name in names if len({str(result.spec.params.get(name)) for result in results}) > 1]


def first_points(results: Sequence[Result]) -> list[Result]:
    """Return the first point of each curve. Where and how it ran is the same for the whole curve."""
    points: dict[str, Result] = {}
    for result in results:
        points.setdefault(curve_label(result), result)
    return list(points.values())


def curve_label(result: Result) -> str:
    """Return the label of a result's curve: case, backend, environment and loop, which all its points share."""
    spec = result.spec
    parts = (spec.case, spec.backend, spec.env.name if spec.env else None, spec.loop)
    return ", ".join(part for part in parts if part)


def crossings(axis: str, curve: Curve) -> list[Crossing]:
    """Return where the ratio to the base passes 1.

    The value is interpolated between neighbouring points, on logarithmic scales of the parameter and of the ratio. Its
    interval ends where the bounds of the ratio's own interval pass 1.
    """
    ratios = curve.ratios
    values = [float(point.values[axis]) for point in ratios]
    located = []
    for left, falling in _overtakings(ratios):
        (value,) = _passages([(values[index], ratios[index].ratio.value) for index in (left, left + 1)], falling)
        early = [point.ratio.low if falling else point.ratio.high for point in ratios]
        late = [point.ratio.high if falling else point.ratio.low for point in ratios]
        low, high = (
            _passages([(x, y) for x, y in zip(values, bounds, strict=True) if y is not None], falling)
            for bounds in (early, late)
        )
        located.append(
            Crossing(
                value=value,
                low=max((x for x in low if x <= value), default=None),
                high=min((x for x in high if x >= value), default=None),
                leader=curve.label if falling else curve.base or "",
            )
        )
    return located


def _overtakings(ratios: Sequence[CurveRatio]) -> list[tuple[int, bool]]:
    """Return where two curves change places: the index to the left, and whether the ratio falls below 1.

    A point is settled if its verdict is faster or slower. Between two settled points, or between a settled point and an
    end of the curve, there is at most one such place, even if noise makes the ratio pass 1 several times. There is none
    if no point is settled, and none before an end at which both are equally fast.
    """
    settled = [index for index, point in enumerate(ratios) if point.verdict in ("faster", "slower")]
    if not settled:
        return []
    slower = [point.ratio.value > 1 for point in ratios]
    places = []
    ends = {end for end in (0, len(ratios) - 1) if ratios[end].verdict != "same"}
    for left, right in pairwise(sorted({*ends, *settled})):
        change = (slower[left], slower[right])
        if change[0] != change[1]:
            between = [index for index in range(left, right) if (slower[index], slower[index + 1]) == change]
            places.append((between[len(between) // 2], change[0]))
    return places


def is_ordered(curve: Curve, axis: str) -> bool:
    """Return whether a parameter has an order in which curves can overtake: words and booleans have none."""
    values = [point.values[axis] for point in curve.ratios]
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)


def interpolate(left: float, right: float, share: float) -> float:
    """Return the value at a share of the way from `left` to a larger `right`.

    The scale is logarithmic, or linear if `left` is 0 or less.
    """
    if left <= 0:
        return left + share * (right - left)
    return math.exp(math.log(left) + share * (math.log(right) - math.log(left)))


def _passages(points: Sequence[tuple[float, float]], falling: bool) -> list[float]:
    """Return where the ratio passes 1 in one direction, interpolated linearly on its logarithm."""
    passages = []
    for (left, a), (right, b) in pairwise(points):
        if (a > 1 >= b) if falling else (a <= 1 < b):
            passages.append(interpolate(left, right, math.log(a) / (math.log(a) - math.log(b))))
    return passages


def ran_out_of_memory(result: Result) -> bool:
    """Return whether a point failed for lack of memory: it said so, or the system killed it."""
    failure = result.failure
    return failure is not None and (failure.kind == "memory" or failure.signal == "SIGKILL")


def open_brackets(sweep: Sweep) -> list[tuple[float, float]]:
    """Return the neighbouring values between which a curve overtakes another. A new point is most useful there."""
    (axis,) = sweep.axes
    brackets = [
        (float(curve.ratios[left].values[axis]), float(curve.ratios[left + 1].values[axis]))
        for curve in sweep.curves[1:]
        for left, _ in (_overtakings(curve.ratios) if is_ordered(curve, axis) else [])
    ]
    return list(dict.fromkeys(brackets))


def _point(result: Result, axes: Sequence[str]) -> Point:
    failure = result.failure
    return Point(
        values={name: result.spec.params[name] for name in axes},
        id=result.id,
        step_seconds=None if failure else result.summary.step_seconds,
        examples_per_second=None if failure else _rate(result.summary),
        failure=failure.brief if failure else None,
        out_of_memory=ran_out_of_memory(result),
    )


def _rate(summary: Summary) -> Interval | None:
    """Return the throughput with its interval."""
    step, rate = summary.step_seconds, summary.examples_per_second
    return stats.scale(step.inverse, rate * step.value) if step and rate else None


def _ratios(
    bases: dict[tuple[Any, ...], Result], others: Sequence[Result], axes: Sequence[str], threshold: float
) -> list[CurveRatio]:
    ratios = []
    for other in others:
        base = bases.get(_values(other, axes))
        if base is None or base.failure or other.failure:
            continue
        ratio = time_ratio(base, other)
        if ratio is not None:
            values = {name: other.spec.params[name] for name in axes}
            unit, _ = unit_of(base, other)
            ratios.append(CurveRatio(values=values, ratio=ratio, unit=unit, verdict=verdict(ratio, threshold)))
    return ratios


def _best(curve: Curve) -> list[dict[str, Any]]:
    """Return the values that may have the highest throughput: their intervals reach that of the highest one.

    A point that was measured in a single process has no interval, so it may be the best. If the highest one has none,
    all may be the best.
    """
    rated = [(point, point.examples_per_second) for point in curve.points if point.examples_per_second]
    rated.sort(key=lambda pair: -pair[1].value)
    if not rated:
        return []
    highest = rated[0][1]
    return [point.values for point, rate in rated if rate is highest or _may_exceed(rate, highest)]


def _may_exceed(rate: Interval, highest: Interval) -> bool:
    return rate.high is None or highest.low is None or rate.high >= highest.low


def disturbances(results: Sequence[Result]) -> list[ResultWarning]:
    """Return one warning of each kind of disturbance, with the number of results that have it."""
    found: dict[str, list[ResultWarning]] = {}
    for result in results:
        for warning in result.warnings:
            if warning.key in DISTURBED:
                found.setdefault(warning.key, []).append(warning)
    return [
        first.model_copy(update={"message": f"{first.message} ({len(same)} of {len(results)} results)"})
        for first, *others in found.values()
        if (same := [first, *others])
    ]


def _values(result: Result, axes: Sequence[str]) -> tuple[Any, ...]:
    return tuple(result.spec.params[name] for name in axes)
