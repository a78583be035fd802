"""How many steps a block has, and how many go before it untimed."""

from __future__ import annotations

import math

from bench.model.sample import Series
from bench.worker.protocol import BLOCK_SECONDS

LONGEST_BLOCK = 1.0
"""Seconds of wall time that a block should not exceed because epochs end in it. It has at least one step."""

LEAD_SHARE = 1 / 8
"""Untimed steps of a worker after a suspension, as a share of the steps of a block."""

GPU_LEAD_SECONDS = 0.1
"""Shortest time of these steps on a GPU, in seconds. Its clock needs about as long to recover from a suspension."""


def steps_of_block(series: Series, typical: float) -> int:
    """Return the number of steps that fill a block.

    Args:
        series: the series. Its warm-up shows how much time passes between epochs.
        typical: seconds of a step.
    """
    steps = math.ceil(1.1 * BLOCK_SECONDS / typical)
    aside = sum(block.epoch_end_seconds for block in series.warmup) / sum(block.steps for block in series.warmup)
    if steps * (typical + aside) > LONGEST_BLOCK:
        steps = round(LONGEST_BLOCK / (typical + aside))
    return max(1, steps)


def steps_of_lead(series: Series, steps: int, gpu: bool) -> int:
    """Return the number of untimed steps of a worker after a suspension.

    Args:
        series: what the worker measured so far.
        steps: steps of a block.
        gpu: whether it runs on a GPU.
    """
    share = math.ceil(LEAD_SHARE * steps)
    if not gpu:
        return share
    latest = (series.blocks or series.warmup)[-1]
    return max(share, math.ceil(GPU_LEAD_SECONDS / latest.step_seconds))
