"""The spread of step times: of all blocks, and of single steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from bench.analyse.spread import QUANTILES, BlockSpread
from bench.model.result import Result
from bench.render import numbers
from bench.render.charts import steps
from bench.render.report.document import Figure, Row, Section, Table
from bench.render.report.result_set import ResultSet

TICKS = 24
"""Marks for one result: its blocks, or as many of their quantiles if it has more blocks."""

COLUMN_HEADS = (
    "", "median", "p5", "p25", "p75", "p95", "single step, p50", "single step, p90", "single step, p99", "processes",
    "blocks",
)  # fmt: skip


def section(results: ResultSet) -> Section | None:
    """Return the spread of steps; None if no steps were timed."""
    spread_of = {label: BlockSpread.of(result, TICKS) for label, result in results.labelled}
    spreads = [_spread(label, spread) for label, spread in spread_of.items() if spread.blocks]
    if not spreads:
        return None
    rows = [_row(label, result, spread_of[label]) for label, result in results.labelled]
    medians = "; ".join(f"{spread.label} {numbers.time(spread.median)}" for spread in spreads)
    caption = (
        "Step time of each block. A thin tick is a block, or a quantile if there are many blocks. The box spans the "
        "first to the third quartile. The thick tick is the median."
    )
    figure = Figure(caption, f"Spread of step times. Medians: {medians}.", partial(steps.draw, spreads))
    return Section("Steps", (figure, Table("Step times of blocks and of single steps", COLUMN_HEADS, tuple(rows))))


def _spread(label: str, spread: BlockSpread) -> steps.Spread:
    _, lower, median, upper, _ = spread.quantiles
    return steps.Spread(label, spread.marks, lower, median, upper)


def _row(label: str, result: Result, spread: BlockSpread) -> Row:
    summary = result.summary
    single = (summary.step_seconds_p50, summary.step_seconds_p90, summary.step_seconds_p99)
    quantiles: Sequence[float | None] = spread.quantiles or (None,) * len(QUANTILES)
    p5, p25, median, p75, p95 = quantiles
    cells = ["–" if value is None else numbers.time(value) for value in (median, p5, p25, p75, p95, *single)]
    return Row(label, (*cells, str(spread.processes), str(spread.blocks)))
