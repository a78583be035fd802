"""Sentences about sweeps: which curve is ahead where, which value is best, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.analyse.sweep import is_ordered
from bench.model.comparison import Verdict
from bench.model.sweep import Crossing, Curve, Sweep
from bench.model.words import join_words
from bench.render import numbers

STANDINGS: dict[tuple[str, str], tuple[Verdict, ...]] = {
    ("slower", "than"): ("slower",),
    ("faster", "than"): ("faster",),
    ("as fast", "as"): ("same",),
    ("undecided", "against"): ("undecided",),
    ("measured too rarely for a verdict", "against"): ("not enough data",),
}
"""Words for how a curve compares with its baseline: the standing and its preposition, each with its verdicts."""

LISTED = 3
"""Maximum number of values that are named if it is not settled which of them has the highest throughput."""


def summary(sweep: Sweep) -> Iterator[str]:
    """Yield what a sweep shows, one sentence after another."""
    if len(sweep.axes) == 1:
        (axis,) = sweep.axes
        for curve in sweep.curves:
            yield from _against_baseline(curve, axis)
    yield from filter(None, map(_best, sweep.curves))
    for curve in sweep.curves:
        for point in curve.points:
            if point.failure:
                what = "ran out of memory" if point.out_of_memory else "failed"
                yield f"{curve.label} {what} at {values(point.values)}: {point.failure.rstrip('.')}."
    if sweep.incomplete_reason:
        yield f"Some points were not measured: {sweep.incomplete_reason.rstrip('.')}."


def _best(curve: Curve) -> str:
    """Say at which value the throughput is highest, or that this is not settled; empty without rates."""
    points = [point for best in curve.best for point in curve.points if point.values == best]
    rates = [point.examples_per_second for point in points if point.examples_per_second]
    if sum(point.examples_per_second is not None for point in curve.points) < 2:
        return ""
    if len(points) == 1:
        rate = numbers.rate(rates[0], "examples/s")
        return f"Highest throughput of {curve.label}: {rate} at {values(points[0].values)}."
    shown = [
        f"{values(point.values)} ({numbers.rate(rate, 'examples/s')})"
        for point, rate in zip(points[:LISTED], rates, strict=False)
    ]
    more = f" and {numbers.count(len(points) - LISTED, 'more value')}" if len(points) > LISTED else ""
    single = any(rate.low is None for rate in rates)
    reason = "some were measured in one process only" if single else "their intervals overlap"
    return (
        f"Highest throughput of {curve.label}: not settled between {'; '.join(shown)}{more}, because {reason}. "
        "Increase --point-time."
    )


def values(point: dict[str, Any]) -> str:
    """Return the values of a point, such as "batch 32, units 64"."""
    return ", ".join(f"{name} {value}" for name, value in point.items())


def _against_baseline(curve: Curve, axis: str) -> Iterator[str]:
    """Compare a curve with its baseline along one axis."""
    if curve.base is None:
        return
    for crossing in curve.crossings:
        yield _crossing(axis, crossing, curve.label, curve.base)
    if curve.ratios and not curve.crossings:
        throughout = is_ordered(curve, axis) and len({ratio.verdict for ratio in curve.ratios}) == 1
        yield (_throughout if throughout else _by_value)(curve, axis, curve.base)


def _crossing(axis: str, crossing: Crossing, label: str, base: str) -> str:
    behind = base if crossing.leader == label else label
    low = numbers.rounded(crossing.low) if crossing.low is not None else "below the measured range"
    high = numbers.rounded(crossing.high) if crossing.high is not None else "above the measured range"
    return f"{crossing.leader} overtakes {behind} at {axis} {numbers.rounded(crossing.value)} [{low}, {high}]."


def _throughout(curve: Curve, axis: str, base: str) -> str:
    """Say which curve is ahead, when the verdict is the same at every value."""
    first, last, verdict = curve.ratios[0].values[axis], curve.ratios[-1].values[axis], curve.ratios[0].verdict
    span = f"at {axis} {first}" if len(curve.ratios) == 1 else f"from {axis} {first} to {last}"
    if verdict == "same":
        return f"{curve.label} and {base} are equally fast {span}."
    if verdict == "undecided":
        return f"It is undecided whether {curve.label} or {base} is faster {span}."
    if verdict == "not enough data":
        return f"Too few trials for a verdict on {curve.label} against {base} {span}."
    ahead, behind = (base, curve.label) if verdict == "slower" else (curve.label, base)
    return f"{ahead} is faster than {behind} {span}." + (" Neither overtakes the other." if first != last else "")


def _by_value(curve: Curve, axis: str, base: str) -> str:
    """Compare a curve with its baseline value by value, along an axis without an order."""
    parts: list[str] = []
    for (standing, preposition), verdicts in STANDINGS.items():
        if at := [str(ratio.values[axis]) for ratio in curve.ratios if ratio.verdict in verdicts]:
            baseline = "" if parts else f" {preposition} {base}"
            parts.append(f"{standing}{baseline} at {axis} {join_words(at)}")
    return f"{curve.label} is {', '.join(parts)}."
