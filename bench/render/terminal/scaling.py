"""A scaling study as text for a terminal: a line for each size, the parts of a step, and sentences."""

from __future__ import annotations

from collections.abc import Sequence

from bench.model.scaling import ScalingStudy, Size
from bench.render import numbers, scaling_table
from bench.render.sentences.scaling import summary, title
from bench.render.text import WIDTH, filled

GAP = "  "
"""Between two columns."""


def text(study: ScalingStudy, width: int = WIDTH) -> str:
    """Return the table, the parts of a step, and the sentences.

    Args:
        study: what to show.
        width: maximum length of a line, in characters. Columns that do not fit beside each other follow below.
    """
    table = _size_rows(study, brief=False)
    if _length(_widths(table)) > width:
        table = _size_rows(study, brief=True)
    lines = [*filled(title(study), width), *_columns(table, width), ""]
    lines += _parts(study, width)
    for sentence in summary(study):
        lines += filled(sentence, width)
    for warning in study.warnings:
        lines += filled(f"warning: {warning.message}. {warning.fix}".rstrip(), width)
    return "".join(f"{line}\n" for line in lines)


def _size_rows(study: ScalingStudy, brief: bool) -> list[tuple[str, ...]]:
    rows = scaling_table.rows(study, brief)
    return [scaling_table.head(study), *((row.label, *row.cells) for row in rows)]


def _parts(study: ScalingStudy, width: int) -> list[str]:
    """Return the parts of a step for each size. If they do not fit the width, return those of the largest size."""
    sizes = scaling_table.divided(study)
    if not sizes:
        return []
    table = _part_rows(study, sizes)
    if _length(_widths(table)) > width:
        table = _part_rows(study, sizes[-1:])
    return ["Where the step goes:", *_columns(table, width), ""]


def _part_rows(study: ScalingStudy, sizes: Sequence[Size]) -> list[tuple[str, ...]]:
    rows = [("", *(numbers.count(size.workers, scaling_table.noun(study)) for size in sizes))]
    for name in scaling_table.parts(sizes):
        cells = (scaling_table.part_cell(scaling_table.part_of(size, name)) for size in sizes)
        rows.append((scaling_table.part_label(study, name, sizes), *cells))
    return rows


def _columns(table: Sequence[tuple[str, ...]], width: int) -> list[str]:
    """Return the lines of a table, with as many columns beside the first one as fit."""
    lines: list[str] = []
    widths = _widths(table)
    start = 1
    while start < len(widths):
        stop = start + 1
        while stop < len(widths) and _length([widths[0], *widths[start : stop + 1]]) <= width:
            stop += 1
        shown = (0, *range(start, stop))
        lines += [GAP.join(f"{row[n]:<{widths[n]}}" for n in shown).rstrip() for row in table]
        start = stop
    return lines


def _widths(table: Sequence[tuple[str, ...]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*table, strict=True)]


def _length(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)
