"""Where the time of a step goes and what would make it faster, read from the results of a ladder and of single changes.

The ladder's levels differ from one to the next in one thing, and took turns in trials, so the difference of two
neighbours within a trial is what that thing costs. The parts add up to the step; some may be negative, and are shown
so. Changes are measured apart from that sum, each against the same base.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from bench.analyse import stats
from bench.analyse.stats import Contrast
from bench.model.explanation import Part
from bench.model.result import Interval, Result
from bench.model.spec import LOOPS, Loop


class Between(NamedTuple):
    """What lies between two levels: in a word, in a few, and what to change where it is large."""

    name: str
    what: str
    fix: str


_BARE_LOOP = "Let its loop do no more than call one tf.function: convert data once before it, read results back seldom."
_MANY_STEPS = "Several steps for each call of TensorFlow: compile(steps_per_execution=32)."
_AHEAD = "Make batches ahead: map(…, num_parallel_calls=tf.data.AUTOTUNE), prefetch; cache() what does not change."

STEPS_DOWN: dict[tuple[Loop, Loop], Between] = {
    ("as-written", "fit"): Between(
        "the program's own loop",
        "shuffling, callbacks and logging beyond a bare fit",
        "Shuffle once before training or in tf.data, and let callbacks and output wait for an epoch's end.",
    ),
    ("as-written", "step"): Between(
        "the program's own loop", "Python, conversions and reads between its steps", _BARE_LOOP
    ),
    ("fit", "step"): Between("Keras' fit", "bookkeeping around the train step", _MANY_STEPS),
    ("as-written", "host-batches"): Between(
        "the program's own loop and its input", "everything but a step on ready batches", f"{_BARE_LOOP} {_AHEAD}"
    ),
    ("step", "host-batches"): Between("input", "making the batches", _AHEAD),
    ("fit", "host-batches"): Between(
        "input and fit", "making the batches, and bookkeeping around the train step", f"{_AHEAD} {_MANY_STEPS}"
    ),
    ("host-batches", "resident"): Between(
        "copies",
        "converting batches and moving them to the device",
        "Hand a step tensors, not arrays: what fits the device once, before training, in the dtype that the step "
        "computes in; what does not, ahead of its step by tf.data's prefetch_to_device.",
    ),
    ("resident", "fused"): Between(
        "dispatch",
        "calling TensorFlow once a step",
        "A larger batch, with the learning rate that it wants; or several steps for each call: a loop within the "
        "tf.function, in fit compile(steps_per_execution=32).",
    ),
}
"""Upper level, lower level: what lies between them."""

LARGE = 0.05
"""From this share of a step on a part is said what to change of it."""


def caveats(levels: Sequence[Result]) -> list[str]:
    """What the levels warn of, each once; with whose it is where it is not all of theirs."""
    whose: dict[str, list[str]] = {}
    for level in levels:
        for warned in level.warnings:
            told = f"{warned.message}. {warned.fix}" if warned.fix else warned.message
            whose.setdefault(told, []).append(level.spec.loop)
    return [told if len(who) == len(levels) else f"{', '.join(who)}: {told}" for told, who in whose.items()]


def simultaneous(count: int) -> float:
    """The confidence of each of so many intervals that all of them together hold with 95% (C. E. Bonferroni, 1936).

    Holm's order would reject a little more, but it gives tests and no intervals: those that it leads to do not hold
    together.
    """
    return 1 - (1 - stats.CONFIDENCE) / max(1, count)


def between(upper: Result, lower: Result) -> Between:
    """What lies between two levels, also where levels between them are missing."""
    pair = upper.spec.loop, lower.spec.loop
    if stats.facts(upper.samples).run_eagerly and not stats.facts(lower.samples).run_eagerly:
        what = f"operations one by one from Python, where {lower.spec.loop} runs a graph"
        return Between("eager execution", what, "Compile the model without run_eagerly.")
    if pair in STEPS_DOWN:
        return STEPS_DOWN[pair]
    loops = LOOPS[LOOPS.index(pair[0]) : LOOPS.index(pair[1]) + 1]
    names, whats, fixes = zip(*(STEPS_DOWN[each] for each in pairwise(loops) if each in STEPS_DOWN), strict=True)
    return Between(" and ".join(names), "; ".join(whats), " ".join(fixes))


def ladder(levels: Sequence[Result]) -> tuple[list[Part], Interval, int]:
    """The parts of a step, the share of the lowest level, and the number of trials.

    Args:
        levels: results of one workload from the program as it is down to the barest loop, which took turns.

    Raises:
        ValueError: no trial holds all of them.
    """
    blocks = [stats.process_blocks(r) for r in levels]
    trials = sorted(set.intersection(*(set(b) for b in blocks)))
    if not trials:
        raise ValueError("no trial holds all levels")
    whole = [stats.faster_half(blocks[0][c]) for c in trials]
    relative = [[math.exp(stats.turns_ratio(blocks[0][c], b[c])) for c in trials] for b in blocks]  # of the whole
    parts, contrasts = [], []
    for (upper, above), (lower, below) in pairwise(zip(levels, relative, strict=True)):
        shares = [a - b for a, b in zip(above, below, strict=True)]
        contrasts.append(Contrast.paired([0.0] * len(shares), shares))
        seconds = statistics.fmean(share * t for share, t in zip(shares, whole, strict=True))
        parts.append((between(upper, lower), upper.spec.loop, lower.spec.loop, seconds))
    confidence = simultaneous(len(contrasts))
    found = [
        Part(
            name=what_lies.name,
            what=what_lies.what,
            upper=upper,
            lower=lower,
            seconds=seconds,
            share=(share := contrast.interval(confidence)),
            measurable=(clear := share.low is not None and share.high is not None and not share.low <= 0 <= share.high),
            fix=what_lies.fix if clear and share.value > LARGE else "",
        )
        for (what_lies, upper, lower, seconds), contrast in zip(parts, contrasts, strict=True)
    ]
    return found, stats.arithmetic(relative[-1]), len(trials)
