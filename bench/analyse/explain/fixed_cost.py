"""Up to which batch the cost of a step that its batch has no part in matters: dispatch, bookkeeping, Python."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bench.analyse import stats
from bench.model.explanation import Finding
from bench.model.result import Result

SMALL = 0.1
"""Below this share of a step its fixed cost no longer matters."""


def fixed_cost(base: Result, larger: Sequence[Result]) -> Iterator[Finding]:
    """The fixed cost of a step, where it is a tenth of it or more, and the batch from which on it is less.

    In each trial a straight line is laid through the step's time over the batch by least squares, each point
    weighed by its time, for small steps are known to within less. What it leaves at batch 0 is the fixed cost.

    Args:
        base: the program as it is.
        larger: the same with larger batches, which took turns with it.
    """
    every = [base, *larger]
    batches = [each.spec.params.get("batch") for each in every]
    if len(every) < 3 or not all(isinstance(size, int) and size > 0 for size in batches):
        return
    sizes = [float(size) for size in batches if size]
    values = [stats.process_values(each, stats.faster_half) for each in every]
    trials = sorted(set.intersection(*(set(v) for v in values)))
    if len(trials) < 2:
        return
    lines = [_line(sizes, [v[trial] for v in values]) for trial in trials]
    shares = stats.arithmetic([fixed / (fixed + sizes[0] * each) for fixed, each in lines])
    if shares.low is None or shares.low < SMALL or min(min(line) for line in lines) <= 0:
        return
    ends = stats.interval([(1 - SMALL) / SMALL * fixed / each for fixed, each in lines])
    fixed, each = (math.exp(sum(math.log(v) for v in side) / len(side)) for side in zip(*lines, strict=True))
    beyond = ", which is beyond what was measured" if ends.value > max(sizes) else ""
    low, high = (ends.value if v is None else v for v in (ends.low, ends.high))
    yield Finding(
        cause="too small steps",
        sentence=f"{shares.value:.0%} of a step is spent whatever its batch; from batch {ends.value:.0f} "
        f"[{low:.0f}, {high:.0f}] on it is under {SMALL:.0%}{beyond}",
        evidence=f"a step takes {fixed * 1e3:.3g} ms and {each * 1e6:.3g} µs an example, by batches "
        f"{', '.join(f'{size:g}' for size in sizes)}",
        fix="A larger batch, with the learning rate that it wants; several steps for each call; --loop fused.",
        share=shares.value,
    )


def _line(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """Seconds at batch 0 and seconds an example, of a line by least squares of relative errors."""
    import numpy as np

    rows = np.array([[1 / s, size / s] for size, s in zip(sizes, seconds, strict=True)])
    fixed, each = np.linalg.lstsq(rows, np.ones(len(rows)), rcond=None)[0]
    return float(fixed), float(each)
