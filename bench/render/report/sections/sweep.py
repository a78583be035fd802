"""A sweep: its curves with where they cross, and its points in a table."""

from __future__ import annotations

from functools import partial

from bench.model.sweep import Curve, Sweep
from bench.render import numbers
from bench.render.charts import curves
from bench.render.report.parts import Figure, Row, Section, Table
from bench.render.terminal import sweep as sweeps
from bench.render.text import plain


def title(sweep: Sweep) -> str:
    """What was swept over what."""
    told = [f"{name} {values[0]} to {values[-1]}" for name, values in sweep.axes.items()]
    curves = "; ".join(each.label for each in sweep.curves)
    return f"{sweep.workload} over {' and '.join(told)}: {curves}"


def sentences(sweep: Sweep) -> list[str]:
    """Who overtakes whom, what is fastest, where memory ended."""
    return sweeps.sentences(sweep)


def sections(sweep: Sweep) -> list[Section]:
    """One section: a chart where there is one axis of positive numbers, and the table."""
    return [Section("Sweep", (*_figure(sweep), _table(sweep)), brief=True)]


def _table(sweep: Sweep) -> Table:
    heads, columns = sweeps.columns(sweep)
    rows = [Row(plain(head), tuple(cells[n] for _, cells in columns)) for n, head in enumerate(heads)]
    return Table("Time of a step, and examples a second", ("", *(plain(head) for head, _ in columns)), tuple(rows))


def _figure(sweep: Sweep) -> list[Figure]:
    if len(sweep.axes) != 1:
        return []
    ((axis, values),) = sweep.axes.items()
    if not all(isinstance(value, (int, float)) and value > 0 for value in values):
        return []
    lines = [curves.Line(plain(each.label), points) for each in sweep.curves if (points := _points(each, axis))]
    if not lines or len(lines) > len(curves.LINES):
        return []
    crossings = [curves.Crossing(c.value, c.low, c.high) for each in sweep.curves for c in each.crossings]
    ends = [
        f"{line.name} from {numbers.time(line.points[0][1])} to {numbers.time(line.points[-1][1])}" for line in lines
    ]
    told = "; ".join([*ends, *(f"crossing at {axis} {c.value:.3g}" for c in crossings)])
    caption = f"Seconds a step over {axis}, with 95% intervals."
    if crossings:
        caption += " A dashed line marks where one overtakes another, its band the interval of that point."
    return [Figure(caption, f"Step time over {axis}: {told}.", partial(curves.curves, lines, axis, crossings))]


def _points(curve: Curve, axis: str) -> list[tuple[float, float, float | None, float | None]]:
    return [
        (float(p.values[axis]), p.step_seconds.value, p.step_seconds.low, p.step_seconds.high)
        for p in curve.points
        if p.step_seconds is not None
    ]
