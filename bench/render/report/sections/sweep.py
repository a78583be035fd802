"""A sweep: its curves and their crossings as a chart, and its points in a table."""

from __future__ import annotations

from functools import partial

from bench.model.sweep import Curve, Sweep
from bench.render import numbers, sweep_table
from bench.render.charts import curves
from bench.render.report.document import Figure, Row, Section, Table
from bench.render.sentences.sweep import summary
from bench.render.text import plain


def title(sweep: Sweep) -> str:
    """Return which workload was swept, over which parameters, on which curves."""
    spans = [f"{name} {values[0]} to {values[-1]}" for name, values in sweep.axes.items()]
    return f"{sweep.workload} over {' and '.join(spans)}: {'; '.join(curve.label for curve in sweep.curves)}"


def sentences(sweep: Sweep) -> list[str]:
    """Return what the sweep shows."""
    return [*summary(sweep), *(f"Warning: {warning.message}. {warning.fix}".rstrip() for warning in sweep.warnings)]


def sections(sweep: Sweep) -> list[Section]:
    """Return one section with the table, and with a chart if there is one axis of positive numbers."""
    return [Section("Sweep", (*_figure(sweep), _table(sweep)), brief=True)]


def _table(sweep: Sweep) -> Table:
    columns = sweep_table.columns(sweep)
    labels = map(plain, sweep_table.row_labels(sweep))
    rows = [Row(label, tuple(column.cells[n] for column in columns)) for n, label in enumerate(labels)]
    return Table("Step time, and examples per second", ("", *(plain(column.head) for column in columns)), tuple(rows))


def _figure(sweep: Sweep) -> list[Figure]:
    if len(sweep.axes) != 1:
        return []
    ((axis, values),) = sweep.axes.items()
    if not all(isinstance(value, (int, float)) and value > 0 for value in values):
        return []
    lines = [curves.Line(plain(curve.label), points) for curve in sweep.curves if (points := _points(curve, axis))]
    if not lines or len(lines) > len(curves.COLOURS):
        return []
    crossings = [curves.CrossingMark(c.value, c.low, c.high) for curve in sweep.curves for c in curve.crossings]
    ends = [
        f"{line.label} from {numbers.time(line.points[0][1])} to {numbers.time(line.points[-1][1])}" for line in lines
    ]
    alt = "; ".join([*ends, *(f"crossing at {axis} {numbers.rounded(c.value)}" for c in crossings)])
    caption = f"Step time over {axis}, with 95% intervals."
    if crossings:
        caption += " A dashed line marks a crossing, the band its interval."
    return [Figure(caption, f"Step time over {axis}: {alt}.", partial(curves.draw, lines, axis, crossings))]


def _points(curve: Curve, axis: str) -> list[tuple[float, float, float | None, float | None]]:
    return [
        (float(p.values[axis]), p.step_seconds.value, p.step_seconds.low, p.step_seconds.high)
        for p in curve.points
        if p.step_seconds is not None
    ]
