"""Gains: how much faster or slower each what-if makes the program."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.analyse.compare import unit_of
from bench.analyse.explain.ladder import simultaneous_confidence
from bench.analyse.samples import paired_contrast
from bench.analyse.stats import Contrast
from bench.analyse.verdict import verdict
from bench.model.explanation import Gain
from bench.model.result import Result
from bench.whatif import WhatIf


def gains(base: Result, results: Mapping[WhatIf, Result], threshold: float, total: int | None = None) -> list[Gain]:
    """Return the gain of each what-if over the base that it was interleaved with, largest first.

    Args:
        base: the program without any what-if.
        results: the result of each what-if.
        threshold: the smallest relative difference that matters.
        total: the number of what-ifs that are tried in all, so that all their intervals hold together. None if these
            are all.
    """
    confidence = simultaneous_confidence(total or len(results))
    return sort_by_gain([_gain(base, what_if, result, threshold, confidence) for what_if, result in results.items()])


def _gain(base: Result, what_if: WhatIf, result: Result, threshold: float, confidence: float) -> Gain:
    unit, contrast = gain_of(base, result)
    ratio = contrast.ratio(confidence) if contrast is not None and result.failure is None else None
    word = verdict(ratio, threshold)
    return Gain(
        name=what_if.name,
        what_if=what_if.words,
        option=what_if.option,
        unit=unit,
        ratio=ratio,
        verdict=word,
        loop=base.spec.loop,
        cause=what_if.cause if word == "faster" else "",
        advice=what_if.advice,
        failure=result.failure.brief if result.failure else None,
    )


def sort_by_gain(gains: Sequence[Gain]) -> list[Gain]:
    """Sort by gain, failures last."""
    return sorted(gains, key=lambda gain: gain.ratio.value if gain.ratio else math.inf)


def gain_of(base: Result, result: Result) -> tuple[str, Contrast | None]:
    """Return the unit of a ratio (an example if the batches differ, else a step), and the logarithm of the ratio.

    The logarithm is None if the two results share no trial.
    """
    unit, factor = unit_of(base, result)
    contrast = paired_contrast(base, result)
    return unit, replace(contrast, mean=contrast.mean + math.log(factor)) if contrast else None
