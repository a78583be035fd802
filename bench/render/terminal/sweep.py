"""A sweep as text for a terminal: one line for each point, one column for each curve, and sentences below."""

from __future__ import annotations

from bench.model.sweep import Sweep
from bench.render import sweep_table
from bench.render.sentences.sweep import summary
from bench.render.text import WIDTH, filled

COLUMN = 30
"""Least characters of a column."""

GAP = 2
"""Characters between two columns."""


def text(sweep: Sweep, width: int = WIDTH) -> str:
    """Return the table, with as many columns side by side as fit, and the sentences."""
    labels, columns = sweep_table.row_labels(sweep), sweep_table.columns(sweep)
    first = max(map(len, [*labels, " ".join(sweep.axes)])) + 2
    longest = max((len(cell) for column in columns for cell in column.cells), default=0)
    wide = max(COLUMN, longest + GAP)
    abreast = max(1, (width - first) // wide)
    lines = [f"{sweep.workload}: step time, and examples per second"]
    for start in range(0, len(columns), abreast):
        shown = columns[start : start + abreast]
        lines.append(" " * first + "".join(f"{column.head[: wide - GAP]:<{wide}}" for column in shown).rstrip())
        for n, label in enumerate(labels):
            cells = "".join(f"{column.cells[n]:<{wide}}" for column in shown)
            lines.append(f"{label:<{first}}{cells}".rstrip())
        lines.append("")
    for sentence in summary(sweep):
        lines += filled(sentence, width)
    for warning in sweep.warnings:
        lines += filled(f"warning: {warning.message}. {warning.fix}".rstrip(), width)
    return "".join(f"{line}\n" for line in lines)
