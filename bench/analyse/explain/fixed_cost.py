"""The fixed cost of a step: the part that does not depend on the batch, such as dispatch and Python."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bench.analyse import stats
from bench.analyse.explain.units import time_text
from bench.analyse.samples import faster_half, merged_facts, process_values
from bench.model.causes import SMALL_STEPS
from bench.model.explanation import Finding
from bench.model.interval import LARGEST_FACTOR
from bench.model.result import Result

MIN_SHARE = 0.1
"""Smallest share of a step for which its fixed cost is a finding."""


def fixed_cost(base: Result, larger: Sequence[Result]) -> Iterator[Finding]:
    """Yield a finding if the fixed cost is a tenth of a step or more.

    In each trial, a line is fitted to the seconds per step over the batch. It is the least-squares line of the relative
    errors, because the error of a step time grows with the step. The fixed cost is the value of the line at batch 0.
    The finding names the batch from which the fixed cost is less than a tenth of the step. Its share is of the base,
    which may be a lower loop of the program (`bench.analyse.explain.shares`).

    Args:
        base: the program without any what-if.
        larger: the same program with larger batches, interleaved with the base.
    """
    results = [base, *larger]
    batches = [result.spec.params.get("batch") or merged_facts(result.samples).batch for result in results]
    if len(results) < 3 or not all(isinstance(size, int) and size > 0 for size in batches):
        return
    sizes = [float(size) for size in batches if size]
    seconds = [process_values(result, faster_half) for result in results]
    trials = sorted(set.intersection(*(set(times) for times in seconds)))
    if len(trials) < 2:
        return
    lines = [_line(sizes, [times[trial] for times in seconds]) for trial in trials]
    shares = [fixed / (fixed + sizes[0] * slope) for fixed, slope in lines]
    share = stats.arithmetic(shares, differences=True)  # the fixed cost is an extrapolation, and may be 0
    if share.low is None or share.low < MIN_SHARE or min(min(line) for line in lines) <= 0:
        return
    end = stats.interval([(1 - MIN_SHARE) / MIN_SHARE * fixed / slope for fixed, slope in lines])
    fixed, slope = (math.exp(sum(math.log(v) for v in values) / len(values)) for values in zip(*lines, strict=True))
    low, high = (end.value if v is None else v for v in (end.low, end.high))
    of_loop = "" if base.spec.loop == "as-written" else f" of the loop {base.spec.loop}"
    bounds = f" [{low:.0f}, {high:.0f}]" if high <= LARGEST_FACTOR * end.value else ""
    extrapolated = ", which is larger than any batch that was measured" if end.value > max(sizes) else ""
    yield Finding(
        cause=SMALL_STEPS,
        sentence=f"{share.value:.0%} of a step{of_loop} does not depend on its batch. This share falls below "
        f"{MIN_SHARE:.0%} at batch {end.value:.0f}{bounds}{extrapolated}.",
        evidence=f"a step takes {time_text(fixed)} and {time_text(slope)} per example, fitted to the batches "
        f"{', '.join(f'{size:g}' for size in sizes)}",
        what_ifs=["batch", "steps-per-execution"],
        parts=["dispatch"],
        share=share.value,
    )


def _line(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """Return the seconds at batch 0 and the seconds per example, fitted by least squares of relative errors."""
    import numpy as np

    rows = np.array([[1 / s, size / s] for size, s in zip(sizes, seconds, strict=True)])
    fixed, slope = np.linalg.lstsq(rows, np.ones(len(rows)), rcond=None)[0]
    return float(fixed), float(slope)
