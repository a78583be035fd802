"""The spread of step times: of all blocks, and of single steps."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from bench.analyse.samples import main_series, usable_samples
from bench.model.result import Result
from bench.render import numbers
from bench.render.charts import steps
from bench.render.report.document import Figure, Row, Section, Table
from bench.render.report.result_set import ResultSet

TICKS = 24
"""Marks for one result: its blocks, or as many of their quantiles if it has more blocks."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
HEAD = (
    "", "processes", "blocks", "p5", "p25", "median", "p75", "p95", "single step, p50", "single step, p90",
    "single step, p99",
)  # fmt: skip


def section(results: ResultSet) -> Section | None:
    """Return the spread of steps; None if no steps were timed."""
    blocks = {label: times for label, result in results.labelled if (times := _block_times(result))}
    if not blocks:
        return None
    spreads = [_spread(label, times) for label, times in blocks.items()]
    rows = [_row(label, result, blocks.get(label, [])) for label, result in results.labelled]
    medians = "; ".join(f"{spread.label} {numbers.time(spread.median)}" for spread in spreads)
    caption = (
        "Step time of each block. A thin tick is a block, or a quantile if there are many blocks. The box spans the "
        "first to the third quartile. The thick tick is the median."
    )
    figure = Figure(caption, f"Spread of step times. Medians: {medians}.", partial(steps.draw, spreads))
    return Section("Steps", (figure, Table("Step times of blocks and of single steps", HEAD, tuple(rows))))


def _block_times(result: Result) -> list[float]:
    """Return the step time of every block of every usable process, in seconds, sorted."""
    series = [main_series(sample) for sample in usable_samples(result)]
    times = [block.step_seconds for timed in series if timed for block in timed.blocks]
    return sorted(value for value in times if math.isfinite(value) and value > 0)


def _spread(label: str, times: list[float]) -> steps.Spread:
    ticks = times if len(times) <= TICKS else [float(v) for v in np.quantile(times, np.linspace(0, 1, TICKS))]
    lower, median, upper = (float(v) for v in np.quantile(times, (0.25, 0.5, 0.75)))
    return steps.Spread(label, ticks, lower, median, upper)


def _row(label: str, result: Result, times: list[float]) -> Row:
    summary = result.summary
    single = (summary.step_seconds_p50, summary.step_seconds_p90, summary.step_seconds_p99)
    quantiles = [float(v) for v in np.quantile(times, QUANTILES)] if times else [None] * len(QUANTILES)
    cells = ["–" if value is None else numbers.time(value) for value in (*quantiles, *single)]
    return Row(label, (str(len(usable_samples(result))), str(len(times)), *cells))
