"""A sweep as a person reads it: a line a point, a column a curve, and below where one overtakes another."""

from __future__ import annotations

from typing import Any

from bench.analyse.sweep import ordered
from bench.model.comparison import Verdict
from bench.model.sweep import Crossing, Curve, Sweep
from bench.render import numbers
from bench.render.text import filled

WIDTH = 80
COLUMN = 22

STANDING: dict[tuple[str, str], tuple[Verdict, ...]] = {
    ("slower", "than"): ("slower",),
    ("faster", "than"): ("faster",),
    ("as fast", "as"): ("same",),
    ("not told apart", "from"): ("undecided", "not enough data"),
}
"""How a curve stands to its base, and the word before that one's name; by which verdicts."""


def text(sweep: Sweep, width: int = WIDTH) -> str:
    """The table, as many curves beside each other as the width holds, then the sentences."""
    heads, cells = columns(sweep)
    label = max(map(len, [*heads, " ".join(sweep.axes)])) + 2
    abreast = max(1, (width - label) // COLUMN)
    lines = [f"{sweep.workload}: time of a step, and examples a second"]
    for start in range(0, len(cells), abreast):
        shown = cells[start : start + abreast]
        lines.append(" " * label + "".join(f"{head[: COLUMN - 2]:<{COLUMN}}" for head, _ in shown).rstrip())
        for n, head in enumerate(heads):
            lines.append((f"{head:<{label}}" + "".join(f"{column[n]:<{COLUMN}}" for _, column in shown)).rstrip())
        lines.append("")
    for sentence in sentences(sweep):
        lines += filled(sentence, width)
    return "".join(f"{line}\n" for line in lines)


def columns(sweep: Sweep) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The points' names, and of each curve its name with a cell for each point, its ratios beside it."""
    places = _places(sweep)
    found: list[tuple[str, list[str]]] = []
    for curve in sweep.curves:
        found.append((curve.label, [_point(curve, place) for place in places]))
        if curve.ratios:
            found.append((f"… over {curve.base}", [_ratio(curve, place) for place in places]))
    return [_said(place) for place in places], found


def sentences(sweep: Sweep) -> list[str]:
    """Who overtakes whom and where, what is fastest, and why the sweep ended before its time."""
    told = []
    for curve in sweep.curves:
        if curve.base is None or len(sweep.axes) != 1:
            continue
        (name,) = sweep.axes
        told += [_crossing(name, each, curve.label, curve.base) for each in curve.crossings]
        if curve.ratios and not curve.crossings:
            settled = {r.verdict for r in curve.ratios} & {"faster", "slower"}
            throughout = ordered(curve, name) and len(settled) < 2
            told.append((_throughout if throughout else _by_value)(curve, name, curve.base))
    for curve in sweep.curves:
        if curve.best_values:
            best = next(p for p in curve.points if p.values == curve.best_values)
            rate = numbers.quantity(best.examples_per_second or 0.0, "examples/s")
            told.append(f"{curve.label} does most examples a second at {_said(curve.best_values)}: {rate}")
    failed = [(curve, point) for curve in sweep.curves for point in curve.points if point.failure]
    for curve, point in failed:
        what = "memory ended" if point.out_of_memory else "failed"
        told.append(f"{curve.label}: {what} at {_said(point.values)}: {point.failure}")
    if sweep.incomplete_reason:
        told.append(f"not all was measured: {sweep.incomplete_reason}")
    return told


def _throughout(curve: Curve, name: str, base: str) -> str:
    """Who is ahead where nobody overtakes, as far as that is settled anywhere: it is the same one wherever it is."""
    where = f"from {name} {curve.ratios[0].values[name]} to {curve.ratios[-1].values[name]}"
    settled = next((r.verdict for r in curve.ratios if r.verdict in ("faster", "slower")), None)
    if settled is None:
        same = all(r.verdict == "same" for r in curve.ratios)
        return f"{curve.label} and {base} " + ("take the same time" if same else "can't be told apart") + f" {where}"
    ahead, behind = (base, curve.label) if settled == "slower" else (curve.label, base)
    return f"{ahead} is ahead of {behind} {where}: nobody overtakes"


def _by_value(curve: Curve, name: str, base: str) -> str:
    """Where a curve is slower than its base, where faster, and where neither: along an axis without an order."""
    told: list[str] = []
    for (words, link), verdicts in STANDING.items():
        if values := [str(r.values[name]) for r in curve.ratios if r.verdict in verdicts]:
            beside = f"{words} {link} {base}" if not told else words
            told.append(f"{beside} at {name} {' and '.join(values)}")
    return f"{curve.label} is {', '.join(told)}"


def _crossing(name: str, found: Crossing, label: str, base: str) -> str:
    behind = base if found.leader == label else label
    low = f"{found.low:.3g}" if found.low is not None else "below what was measured"
    high = f"{found.high:.3g}" if found.high is not None else "above what was measured"
    return f"{found.leader} overtakes {behind} at {name} {found.value:.3g} [{low}, {high}]"


def _places(sweep: Sweep) -> list[dict[str, Any]]:
    """Values of all points of any curve, rising."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for curve in sweep.curves:
        for point in curve.points:
            found.setdefault(tuple(point.values.values()), point.values)
    return [found[key] for key in sorted(found)]


def _point(curve: Curve, place: dict[str, Any]) -> str:
    point = next((p for p in curve.points if p.values == place), None)
    if point is None:
        return "–"
    if point.step_seconds is None:
        return "memory ended" if point.out_of_memory else "failed"
    rate = f" {numbers.quantity(point.examples_per_second, '')}/s" if point.examples_per_second else ""
    return f"{numbers.time(point.step_seconds.value)}{rate}"


def _ratio(curve: Curve, place: dict[str, Any]) -> str:
    ratio = next((r for r in curve.ratios if r.values == place), None)
    return numbers.factor(ratio.ratio) if ratio else "–"


def _said(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())
