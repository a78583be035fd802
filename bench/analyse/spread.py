"""The spread of the step times of a result's blocks: quantiles, and marks that a chart can show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bench.analyse.samples import main_series, usable_samples
from bench.model.result import Result

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class BlockSpread:
    """The step times of all blocks of all usable processes, in seconds.

    Args:
        processes: number of usable processes.
        blocks: number of blocks.
        quantiles: the `QUANTILES`; empty without blocks.
        marks: all step times in rising order, or quantiles of them if there are too many.
    """

    processes: int
    blocks: int
    quantiles: Sequence[float]
    marks: Sequence[float]

    @classmethod
    def of(cls, result: Result, marks: int) -> BlockSpread:
        """Return the spread of a result, with at most `marks` marks."""
        import numpy as np

        samples = usable_samples(result)
        series = [main_series(sample) for sample in samples]
        times = [block.step_seconds for timed in series if timed for block in timed.blocks]
        times = sorted(value for value in times if math.isfinite(value) and value > 0)
        if not times:
            return cls(len(samples), 0, (), ())
        shown = times if len(times) <= marks else np.quantile(times, np.linspace(0, 1, marks)).tolist()
        return cls(len(samples), len(times), np.quantile(times, QUANTILES).tolist(), shown)
