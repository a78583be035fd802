"""Caveats of an explanation: what disturbed it, how much wider that makes the intervals, and other warnings."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from bench.analyse import prior
from bench.analyse.samples import merged_facts, process_blocks, usable_samples
from bench.analyse.training_time import lacks_validation
from bench.analyse.warnings import DISTURBANCES
from bench.model.result import Result, ResultWarning

WIDER = 3.0
"""A caveat says that the machine was noisy if intervals are at least this many times as wide as on a quiet machine."""

OTHER_WORK = ("load", "stolen", "unsettled")
"""Disturbances that other work on the machine, or on its host, can cause. Several of them have one fix."""

NO_OTHER_WORK = "Close other programs, or use a dedicated machine."


def caveats(levels: Sequence[Result]) -> list[str]:
    """Return each warning of the levels once. It names the loops that have it, unless all have it.

    The first level's warning about a disturbance stands for those of all levels. If the machine was not quiet, the
    first caveat says so and contains the disturbances.
    """
    disturbances: dict[str, ResultWarning] = {}
    loops: dict[str, list[str]] = {}
    for level in levels:
        for warning in level.warnings:
            if warning.key in DISTURBANCES:
                warning = disturbances.setdefault(warning.key, warning)
            loops.setdefault(_text(warning), []).append(level.spec.loop)
    noise = _noise(levels)
    if noise:
        causes = "; ".join(warning.message for warning in disturbances.values())
        several = sum(key in OTHER_WORK for key in disturbances) > 1
        fixes = dict.fromkeys(
            NO_OTHER_WORK if several and key in OTHER_WORK else warning.fix for key, warning in disturbances.items()
        )
        noise += " ".join([f" Possible causes: {causes}.", *filter(None, fixes)]) if causes else ""
        for warning in disturbances.values():
            del loops[_text(warning)]
    others = [text if len(of) == len(levels) else f"{', '.join(of)}: {text}" for text, of in loops.items()]
    if cut_off := [level.spec.loop for level in levels if _is_cut_off(level)]:
        others.append(f"The diagnosis was cut off in: {', '.join(cut_off)}. Causes or their shares may be missing.")
    if lacks_validation(usable_samples(levels[0])):
        others.append("The validation of fit was not timed by itself. The time of the training may lack it.")
    return [noise, *others] if noise else others


def _is_cut_off(level: Result) -> bool:
    """Return whether a process was interrupted after its steps were timed, and no other one was inspected."""
    timed = [sample for sample in level.samples if any(series.blocks for series in sample.series)]
    interrupted = any(sample.failure is not None and sample.failure.kind == "interrupted" for sample in timed)
    return interrupted and merged_facts(usable_samples(level)).retraced is None


def _text(warning: ResultWarning) -> str:
    return f"{warning.message}. {warning.fix}" if warning.fix else warning.message


def _noise(levels: Sequence[Result]) -> str:
    """Say how much wider than usual the intervals are. Empty if the machine was about as quiet as usual."""
    blocks = [process_blocks(level) for level in levels]
    trials = sorted(set.intersection(*(set(b) for b in blocks)))
    whole, *others = [[b[trial] for trial in trials] for b in blocks]
    usual = [prior.of_ratio(whole, other) for other in others] if trials else []
    spreads = [math.sqrt(known.variance) for known in usual if known is not None]
    if not spreads or (spread := statistics.median(spreads)) < WIDER * prior.QUIET:
        return ""
    return (
        f"The machine was not quiet: ratios vary by {spread:.0%} from trial to trial. On a quiet machine they vary by "
        f"{prior.QUIET:.0%}. Therefore, intervals are about {spread / prior.QUIET:.0f} times as wide."
    )
