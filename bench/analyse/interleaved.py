"""The rounds of a trial: one block of each of its processes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from bench.model.sample import Block


def rounds(*processes: Sequence[Block]) -> list[tuple[Block, ...]] | None:
    """Return the blocks of each round, one per process.

    Returns:
        None if the processes were not interleaved, but ran one after another.
    """
    blocks = list(zip(*processes, strict=False))
    positions = [position for turn in blocks for position in sorted(block.position for block in turn)]
    return blocks if all(earlier < later for earlier, later in pairwise(positions)) else None
