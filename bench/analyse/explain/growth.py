"""Steps that take longer and longer: lists, graphs or histories that grow."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from functools import cache, reduce
from itertools import combinations
from typing import NamedTuple

from bench.analyse.explain.units import time_text
from bench.analyse.samples import main_series, process_blocks
from bench.model.causes import GROWING
from bench.model.explanation import Finding
from bench.model.result import Result
from bench.model.sample import Block, ProcessSample
from bench.model.words import count

SLOW_BLOCKS = 2
"""Blocks at the start of a warm-up that do not count. They can be slow, so they would hide growth."""

FEWEST_STEPS = 100
"""Fewest steps of a process that can show growth. Fewer steps mostly show the end of the warm-up."""

FEWEST_SPANS = 5
"""Fewest spans of steps of a process that can show a trend."""

FEWEST_PROCESSES = 2
"""Fewest processes that can show a small growth. In a single one, other work on the machine may have grown."""

GROWTH = 1.15
"""Smallest ratio of the last third's step to the first third's step that every process must have."""

TREND = 3.5
"""Smallest standard score of the trend over spans, of all processes together (S. A. Stouffer, 1949)."""

MOST_EXACT = 20
"""Number of times up to which the probability of a trend is exact. For more, the normal distribution is close."""

LARGE_GROWTH = 2.0
"""Smallest ratio of the last third's step to the first third's step for which a single process is enough."""


class _StepsOfProcess(NamedTuple):
    """The steps of a process.

    Attributes:
        start: its first blocks, merged.
        spans: the others, merged into spans of about equally many steps.
    """

    start: Block
    spans: list[Block]

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> _StepsOfProcess:
        """Return the steps of a process, by its blocks in their order. There must be more than `SLOW_BLOCKS`."""
        return cls(reduce(_merged, blocks[:SLOW_BLOCKS]), _spans(blocks[SLOW_BLOCKS:]))

    @property
    def is_long(self) -> bool:
        """Whether growth would show."""
        return len(self.spans) >= FEWEST_SPANS and _steps(self.spans) >= FEWEST_STEPS

    @property
    def steps(self) -> int:
        return self.start.steps + _steps(self.spans)


def growing_steps(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if the steps of every process take longer and longer."""
    valid = process_blocks(base)
    blocks = [_all_blocks(sample) for sample in samples if sample.trial in valid]
    processes = [_StepsOfProcess.of(each) for each in blocks if len(each) > SLOW_BLOCKS]
    processes = [process for process in processes if process.is_long]
    wall = [[span.step_seconds for span in process.spans] for process in processes]
    if not wall or sum(last - first for first, last in map(_thirds, wall)) <= 0:
        return
    if _grows(wall):
        of_step, what = _wall, ""
    elif _grows([[_cpu(span) for span in process.spans] for process in processes]):
        of_step, what = _cpu, " of CPU time"  # other load on the machine changes it less
    else:
        return
    longest = max(processes, key=lambda process: process.steps)
    first, last = _thirds([of_step(span) for span in longest.spans])
    start_step = of_step(longest.start)
    first = min(first, start_step) if start_step > 0 else first
    yield Finding(
        cause=GROWING,
        sentence=f"A step takes {time_text(first)}{what} at first and {time_text(last)} after "
        f"{count(longest.steps, 'step')}.",
        evidence="the first steps and the last third of the steps, in each of "
        f"{count(len(processes), 'process', 'processes')}. The projection assumes that steps stay as long as they were",
        fix="Look for what grows with each step: a list or history that is read again, a graph that gets new "
        "operations, or tensors that are kept.",
        share=(last - first) / last,
    )


def _wall(block: Block) -> float:
    return block.step_seconds


def _cpu(block: Block) -> float:
    return block.cpu_seconds / block.steps


def _steps(blocks: Sequence[Block]) -> int:
    return sum(block.steps for block in blocks)


def _grows(processes: Sequence[Sequence[float]]) -> bool:
    """Return whether the step times of every process grow, given span by span.

    All processes must grow by `GROWTH`. In addition, each must grow by `LARGE_GROWTH` with a clear trend, or several
    processes together must have a clear trend.
    """
    thirds = [_thirds(times) for times in processes]
    if any(first <= 0 or last < GROWTH * first for first, last in thirds):
        return False
    scores = [trend(times) for times in processes]
    is_large = min(last / first for first, last in thirds) >= LARGE_GROWTH and min(scores) >= TREND
    is_trend = len(scores) >= FEWEST_PROCESSES and sum(scores) / math.sqrt(len(scores)) >= TREND
    return is_large or is_trend


def _all_blocks(sample: ProcessSample) -> list[Block]:
    """Return the blocks of a process in their order, warm-up included, because steps that grow do so from the start."""
    series = main_series(sample)
    return [*series.warmup, *series.blocks] if series is not None else []


def _spans(blocks: Sequence[Block]) -> list[Block]:
    """Merge blocks into spans of about equally many steps.

    The blocks of the warm-up may have many more steps than the others, in which a step therefore grows less.
    """
    spans: list[Block] = []
    most = max((block.steps for block in blocks), default=0)
    for block in blocks:
        if spans and 2 * (spans[-1].steps + block.steps) <= 3 * most:
            block = _merged(spans.pop(), block)
        spans.append(block)
    if len(spans) > 1 and 2 * spans[-1].steps < most:
        spans[-2:] = [_merged(*spans[-2:])]
    return spans


def _merged(first: Block, second: Block) -> Block:
    return Block(
        seconds=first.seconds + second.seconds,
        steps=first.steps + second.steps,
        cpu_seconds=first.cpu_seconds + second.cpu_seconds,
    )


def _thirds(times: Sequence[float]) -> tuple[float, float]:
    """Return the typical step time of the first and of the last third of the spans."""
    third = len(times) // 3
    return statistics.median(times[:third]), statistics.median(times[-third:])


def trend(times: Sequence[float]) -> float:
    """Return the standard score of the step time's trend. Positive if it grows.

    This is the test of H. B. Mann, 1945, without the correction for ties. For few times, the probability is exact.
    """
    n = len(times)
    score = sum((b > a) - (b < a) for a, b in combinations(times, 2))
    if n > MOST_EXACT:
        return score / math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    orders = _orders(n)
    inversions = (n * (n - 1) // 2 - score) // 2
    as_ordered = sum(orders[: inversions + 1]) / sum(orders)
    return -statistics.NormalDist().inv_cdf(min(as_ordered, 1 - 1e-9))


@cache
def _orders(n: int) -> list[int]:
    """Return the number of orders of `n` things, by their number of inversions."""
    counts = [1]
    for size in range(2, n + 1):
        counts = [
            sum(counts[max(0, inversions - size + 1) : inversions + 1]) for inversions in range(len(counts) + size - 1)
        ]
    return counts
