"""What a sweep shows: a curve for each backend or loop, where one overtakes another, and where memory ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from bench.analyse.compare import step_ratio
from bench.analyse.pairing import within_group
from bench.analyse.verdict import verdict
from bench.model.result import Result
from bench.model.sweep import Crossing, Curve, CurveRatio, Point, Sweep


def sweep_of(results: Sequence[Result], threshold: float) -> Sweep:
    """Reads a sweep from its points' results.

    Args:
        results: of all points of one sweep, at least one.
        threshold: relative difference that matters.
    """
    axes = swept_axes(results)
    by_curve: dict[str, list[Result]] = {}
    for each in sorted(results, key=lambda r: _place(r, axes)):
        by_curve.setdefault(curve_label(each), []).append(each)
    names = list(dict.fromkeys(curve_label(r) for r in results))
    curves = [Curve(label=name, points=[_point(r, axes) for r in by_curve[name]]) for name in names]
    bases = {curve_label(other): curve_label(base) for base, other in within_group(firsts(results))}
    for curve in curves:
        _best(curve)
        curve.base = bases.get(curve.label)
        if curve.base is None:
            continue
        base = {_place(r, axes): r for r in by_curve[curve.base]}
        curve.ratios = _ratios(base, by_curve[curve.label], axes, threshold)
        if len(axes) == 1 and ordered(curve, axes[0]):
            curve.crossings = crossings(axes[0], curve)
    reasons = (each.sweep.incomplete_reason for each in reversed(results) if each.sweep is not None)
    return Sweep(
        id=results[0].parent or "",
        workload=results[0].spec.workload,
        axes={name: sorted({r.spec.params[name] for r in results}) for name in axes},
        threshold=threshold,
        curves=curves,
        incomplete_reason=next(filter(None, reasons), None),
    )


def swept_axes(results: Sequence[Result]) -> list[str]:
    """The swept parameters; of results that do not name them, those that differ."""
    if results[0].sweep is not None:
        return results[0].sweep.axes
    names = dict.fromkeys(name for each in results for name in each.spec.params)
    return [name for name in names if len({str(each.spec.params.get(name)) for each in results}) > 1]


def firsts(results: Sequence[Result]) -> list[Result]:
    """The first point of each curve: where and how it ran is the same along it."""
    found: dict[str, Result] = {}
    for each in results:
        found.setdefault(curve_label(each), each)
    return list(found.values())


def curve_label(result: Result) -> str:
    """What stays the same along a curve."""
    spec = result.spec
    return ", ".join([*([spec.case] if spec.case else []), spec.backend, spec.loop])


def crossings(axis: str, curve: Curve) -> list[Crossing]:
    """Where the ratio to the base passes 1, interpolated between neighbours (`way`) on the ratio's logarithm.

    Its interval reaches to where the bounds of the ratio's own interval pass 1: it is as wide as the data leave it.
    """
    ratios = curve.ratios
    places = [float(r.values[axis]) for r in ratios]
    found = []
    for left, falling in _overtakings(ratios):
        (value,) = _passing([(places[n], ratios[n].ratio.value) for n in (left, left + 1)], falling)
        low, high = (
            _passing([(x, y) for x, y in zip(places, side, strict=True) if y is not None], falling)
            for side in (
                [r.ratio.low if falling else r.ratio.high for r in ratios],
                [r.ratio.high if falling else r.ratio.low for r in ratios],
            )
        )
        found.append(
            Crossing(
                value=value,
                low=max((x for x in low if x <= value), default=None),
                high=min((x for x in high if x >= value), default=None),
                leader=curve.label if falling else curve.base or "",
            )
        )
    return found


def _overtakings(ratios: Sequence[CurveRatio]) -> list[tuple[int, bool]]:
    """Where a curve and its base change places: the neighbour to the left, and whether the ratio falls below 1.

    Between two points where it is settled who is ahead, or such a point and the curve's end, there is one such place at
    most, however often noise passes 1 there; where nothing is settled there is none.
    """
    settled = [n for n, r in enumerate(ratios) if r.verdict in ("faster", "slower")]
    if not settled:
        return []
    found = []
    for left, right in pairwise(sorted({0, *settled, len(ratios) - 1})):
        behind, ahead = ((ratios[n].ratio.value > 1) for n in (left, right))
        if behind != ahead:
            between = range(left, right)
            passes = [
                n for n in between if (ratios[n].ratio.value > 1, ratios[n + 1].ratio.value > 1) == (behind, ahead)
            ]
            found.append((passes[len(passes) // 2], behind))
    return found


def ordered(curve: Curve, axis: str) -> bool:
    """Whether an axis has an order in which one curve can overtake another: words have none, nor have yes and no."""
    values = [r.values[axis] for r in curve.ratios]
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)


def way(left: float, right: float, share: float) -> float:
    """What lies this share of the way from one value to a larger one: on a logarithmic scale, which 0 is not on."""
    if left <= 0:
        return left + share * (right - left)
    return math.exp(math.log(left) + share * (math.log(right) - math.log(left)))


def _passing(points: Sequence[tuple[float, float]], falling: bool) -> list[float]:
    """Where lines between these points pass 1 in one direction, straight on the second's logarithm."""
    found = []
    for (left, a), (right, b) in pairwise(points):
        if (a > 1 >= b) if falling else (a <= 1 < b):
            found.append(way(left, right, math.log(a) / (math.log(a) - math.log(b))))
    return found


def memory_ended(result: Result) -> bool:
    """Whether a point failed for want of memory, as it said itself or as the system's killing tells."""
    failure = result.failure
    return failure is not None and (failure.kind == "memory" or failure.signal == "SIGKILL")


def _point(result: Result, axes: Sequence[str]) -> Point:
    failure = result.failure
    return Point(
        values={name: result.spec.params[name] for name in axes},
        id=result.id,
        step_seconds=None if failure else result.summary.step_seconds,
        examples_per_second=None if failure else result.summary.examples_per_second,
        failure=failure.message if failure else None,
        out_of_memory=memory_ended(result),
    )


def _ratios(
    bases: dict[tuple[Any, ...], Result], others: Sequence[Result], axes: Sequence[str], threshold: float
) -> list[CurveRatio]:
    found = []
    for other in others:
        base = bases.get(_place(other, axes))
        if base is None or base.failure or other.failure:
            continue
        ratio, _ = step_ratio(base, other)
        if ratio is not None:
            values = {name: other.spec.params[name] for name in axes}
            found.append(CurveRatio(values=values, ratio=ratio, verdict=verdict(ratio, threshold)))
    return found


def _best(curve: Curve) -> None:
    rated = [p for p in curve.points if p.examples_per_second]
    if rated:
        curve.best_values = max(rated, key=lambda p: p.examples_per_second or 0.0).values


def _place(result: Result, axes: Sequence[str]) -> tuple[Any, ...]:
    return tuple(result.spec.params[name] for name in axes)


def open_brackets(sweep: Sweep) -> list[tuple[float, float]]:
    """Neighbouring values between which a curve overtakes another: where another point would tell most."""
    (axis,) = sweep.axes
    found = [
        (float(curve.ratios[left].values[axis]), float(curve.ratios[left + 1].values[axis]))
        for curve in sweep.curves[1:]
        for left, _ in (_overtakings(curve.ratios) if ordered(curve, axis) else [])
    ]
    return list(dict.fromkeys(found))
