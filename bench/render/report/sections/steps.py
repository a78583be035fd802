"""How steps are spread: the times of all blocks, and of single steps."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from bench.analyse import stats
from bench.model.result import Result
from bench.render import numbers
from bench.render.charts import bars
from bench.render.report.parts import Figure, Row, Section, Table
from bench.render.report.subject import Subject

TICKS = 24
"""Marks for one result: its blocks, or where they are more, as many of their quantiles."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
HEAD = ("", "processes", "blocks", "p5", "p25", "median", "p75", "p95", "alone, p50", "alone, p90", "alone, p99")


def section(subject: Subject) -> Section | None:
    """The spread of steps; none where no steps were timed."""
    spreads = {name: blocks for name, each in subject.named if (blocks := _blocks(each))}
    if not spreads:
        return None
    shown = [_spread(name, blocks) for name, blocks in spreads.items()]
    rows = [_row(name, each, spreads.get(name, [])) for name, each in subject.named]
    told = "; ".join(f"{each.name} {numbers.time(each.middle)}" for each in shown)
    caption = "Seconds a step, block by block: a thin tick for each block (for one in so many where they are many), a "
    caption += "box from the first to the third quartile, a thick tick for the median."
    figure = Figure(caption, f"Spread of step times, medians: {told}.", partial(bars.steps, shown))
    table = Table("Time of a step in blocks, and of single steps", HEAD, tuple(rows))
    return Section("Steps", (figure, table))


def _blocks(result: Result) -> list[float]:
    """Seconds a step of every block of every usable process, sorted."""
    series = [stats.main_series(sample) for sample in stats.usable(result)]
    found = [block.step_seconds for each in series if each for block in each.blocks]
    return sorted(value for value in found if math.isfinite(value) and value > 0)


def _spread(name: str, blocks: list[float]) -> bars.Spread:
    ticks = blocks if len(blocks) <= TICKS else [float(v) for v in np.quantile(blocks, np.linspace(0, 1, TICKS))]
    low, middle, high = (float(v) for v in np.quantile(blocks, (0.25, 0.5, 0.75)))
    return bars.Spread(name, ticks, low, middle, high)


def _row(name: str, result: Result, blocks: list[float]) -> Row:
    found = result.summary
    alone = (found.step_seconds_p50, found.step_seconds_p90, found.step_seconds_p99)
    spread = [float(v) for v in np.quantile(blocks, QUANTILES)] if blocks else [None] * len(QUANTILES)
    times = ["–" if value is None else numbers.time(value) for value in (*spread, *alone)]
    return Row(name, (str(len(stats.usable(result))), str(len(blocks)), *times))
