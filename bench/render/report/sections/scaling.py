"""A scaling study: its speed-ups as a chart and a table, and where the steps of several workers go."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from bench.model.scaling import PartName, ScalingPart, ScalingStudy, Size
from bench.render import numbers, scaling_table
from bench.render.charts import speedup, waterfall
from bench.render.charts.speedup import SpeedUp
from bench.render.report.document import Figure, Row, Section, Table
from bench.render.scaling_table import WHAT, noun
from bench.render.sentences.scaling import summary
from bench.render.sentences.scaling import title as title_of


def title(study: ScalingStudy) -> str:
    """Return what was measured with how many workers."""
    return title_of(study)


def sentences(study: ScalingStudy) -> list[str]:
    """Return what the study shows."""
    return [*summary(study), *(f"Warning: {warning.message}. {warning.fix}".rstrip() for warning in study.warnings)]


def sections(study: ScalingStudy) -> list[Section]:
    """Return a section about the sizes, and one about the parts of their steps if these were measured."""
    shown = [Section("Scaling", (*figure(study.sizes, noun(study)), _table(study)), brief=True)]
    divided = scaling_table.divided(study)
    return [*shown, _parts(study, divided)] if divided else shown


def figure(sizes: Sequence[Size], noun: str) -> list[Figure]:
    """Return the chart of the speed-ups; an empty list if there are fewer than two.

    Args:
        sizes: by rising number of workers.
        noun: what the sizes count, such as "worker".
    """
    points = [
        SpeedUp(size.workers, up.value, _positive(up.low), up.high)
        for size in sizes
        if (up := size.speed_up) is not None and up.value > 0
    ]
    if len(points) < 2:
        return []
    values = "; ".join(
        f"{numbers.count(point.workers, noun)} {numbers.rounded(point.value)} times as fast" for point in points
    )
    caption = f"Speed-up over one {noun} without a strategy, with 95% intervals. The dashed line is the ideal speed-up."
    return [Figure(caption, f"Speed-up: {values}.", partial(speedup.draw, points, f"{noun}s"))]


def _positive(bound: float | None) -> float | None:
    return bound if bound is not None and bound > 0 else None


def _table(study: ScalingStudy) -> Table:
    rows = [
        Row(row.label, row.cells, "alarm" if row.wrong else "", wrong=row.wrong) for row in scaling_table.rows(study)
    ]
    bare = f"bare: one {noun(study)} without a strategy"
    return Table(f"Throughput and speed-up by number of {noun(study)}s; {bare}", scaling_table.head(study), tuple(rows))


def _parts(study: ScalingStudy, sizes: Sequence[Size]) -> Section:
    names = scaling_table.parts(sizes)
    rows = []
    for name in names:
        found = [scaling_table.part_of(size, name) for size in sizes]
        cells = [cell for part in found for cell in (scaling_table.part_seconds(part), scaling_table.part_share(part))]
        rows.append(Row(scaling_table.part_label(study, name, sizes), (*cells, WHAT[name])))
    columns = [column for size in sizes for column in (numbers.count(size.workers, noun(study)), "share")]
    table = Table("Parts of a step, with 95% intervals", ("part", *columns, "what it is"), tuple(rows))
    return Section("Where the step goes", (*_waterfall(study, sizes[-1], names), table), brief=True)


def _waterfall(study: ScalingStudy, size: Size, names: Sequence[PartName]) -> list[Figure]:
    """Return the parts of one size's step as a waterfall; an empty list if its step time is unknown."""
    if size.step_seconds is None:
        return []
    several = numbers.count(size.workers, noun(study))
    whole = f"step of {several}"
    bars = [waterfall.Bar(whole, 0.0, 1.0, numbers.interval(size.step_seconds), "step")]
    reached = 1.0
    for part in reversed([found for name in names if (found := scaling_table.part_of(size, name)) is not None]):
        low = reached - part.share
        label = scaling_table.short_part_label(study, part.name, size)
        known = scaling_table.is_measurable(part)
        text = scaling_table.part_share(part) if known else scaling_table.part_seconds(part)
        bars.append(waterfall.Bar(label, low, reached, text, _kind(part)))
        reached = low
    alt = "; ".join(f"{bar.label} {bar.text}" for bar in bars)
    caption = f"The parts of the step of {several}. A light grey bar may take no time. A negative part saves time."
    return [Figure(caption, f"Waterfall of the parts of a step: {alt}.", partial(waterfall.draw, bars))]


def _kind(part: ScalingPart) -> waterfall.Kind:
    if part.name == "ideal":
        return "rest"
    return "part" if scaling_table.is_measurable(part) else "unmeasurable"
