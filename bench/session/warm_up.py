"""The warm-up of a worker: blocks that do not count, until steps get neither faster nor slower."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from bench.model.phase import Activity
from bench.model.sample import Series
from bench.session.block_steps import steps_of_block
from bench.session.blocks import Blocks
from bench.session.sample_events import OutOfSteps
from bench.session.steady_state import WINDOW, is_settled

WARMUP_BLOCKS = 40
WARMUP_SECONDS = 10.0
WARMUP_SHARE = 1 / 4
"""Largest share of the steps of a script that the warm-up takes, if their number is known."""


def warm_up(
    blocks: Blocks, all_series: Sequence[Series], program_steps: int | None, report: Callable[[Activity, str], None]
) -> None:
    """Run blocks of each series until they settle, and find how many steps fill a block.

    If a script ends meanwhile, `count_last_blocks` applies.

    Args:
        blocks: The blocks of the worker.
        all_series: Everything that it times.
        program_steps: Steps that a script runs until it ends by itself. None if that is not known.
        report: Called with the phase and a note for each series.
    """
    try:
        for series in all_series:
            report("warm_up", series.name if len(all_series) > 1 else "")
            blocks.calibrate(series)
            if len(all_series) == 1:
                _settle(blocks, series, program_steps)
    except OutOfSteps:
        count_last_blocks(all_series)


def count_last_blocks(all_series: Sequence[Series]) -> None:
    """Count the later half of the warm-up of a script that ended as the steady state, unless it has timed blocks."""
    for series in all_series:
        if not series.blocks:
            half = len(series.warmup) // 2
            series.blocks = [b.model_copy(update={"position": n}) for n, b in enumerate(series.warmup[half:])]
            series.warmup = series.warmup[:half]


def _settle(blocks: Blocks, series: Series, program_steps: int | None) -> None:
    while not is_settled([b.step_seconds for b in series.warmup]):
        if len(series.warmup) >= WARMUP_BLOCKS or sum(b.wall_seconds for b in series.warmup) > WARMUP_SECONDS:
            series.settled = len(series.warmup) < 2 * WINDOW  # too few blocks cannot show that it is not settled
            break
        if program_steps and sum(b.steps for b in series.warmup) > WARMUP_SHARE * program_steps:
            break
        series.warmup.append(blocks.run(series.name, -1))
    typical = statistics.median(block.step_seconds for block in series.warmup[-WINDOW:])
    blocks.steps[series.name] = steps_of_block(series, typical)
