"""The ladder: what each level costs beyond the next one.

Each level differs from the next in one thing, and all levels are interleaved in trials. The difference between two
neighbours within a trial is the cost of that thing. The parts add up to the step. A part may be negative.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from bench.analyse import prior, stats
from bench.analyse.explain.pipeline import fitting_what_ifs, has_no_pipeline
from bench.analyse.samples import faster_half, merged_facts, process_blocks, typical_ratio
from bench.analyse.stats import Contrast
from bench.model.causes import EAGER
from bench.model.explanation import Part
from bench.model.interval import Interval
from bench.model.result import Result
from bench.model.spec import LOOPS, Loop
from bench.model.words import join_words


class LevelDifference(NamedTuple):
    """What one level does and the next one does not do."""

    name: str
    what: str
    fix: str
    includes_input: bool = False
    what_ifs: tuple[str, ...] = ()


_OWN_LOOP = "Call only one tf.function in the loop. Convert the data once, before the loop. Read results back rarely."
_PIPELINE = "Pass a tf.data pipeline that ends with prefetch(tf.data.AUTOTUNE) to fit."
_PREPARE = ("parallel-map", "prefetch", "cache")
_STEPS_PER_CALL = ("steps-per-execution",)

DIFFERENCES: dict[tuple[Loop, Loop], LevelDifference] = {
    ("as-written", "fit"): LevelDifference(
        "the program's own loop",
        "shuffling, callbacks and logging, which a bare fit leaves out",
        "Shuffle once before training or in tf.data.",
        what_ifs=("without-callbacks",),
    ),
    ("as-written", "step"): LevelDifference(
        "the program's own loop", "Python, conversions and reads between steps", _OWN_LOOP
    ),
    ("fit", "step"): LevelDifference(
        "Keras fit", "Keras bookkeeping around the train step", "", what_ifs=_STEPS_PER_CALL
    ),
    ("as-written", "host-batches"): LevelDifference(
        "the program's own loop and its input",
        "everything except a step on prepared batches",
        _OWN_LOOP,
        includes_input=True,
        what_ifs=_PREPARE,
    ),
    ("step", "host-batches"): LevelDifference("input", "preparing batches", "", includes_input=True, what_ifs=_PREPARE),
    ("fit", "host-batches"): LevelDifference(
        "input and fit",
        "preparing batches, and Keras bookkeeping around the train step",
        "",
        includes_input=True,
        what_ifs=(*_PREPARE, *_STEPS_PER_CALL),
    ),
    ("host-batches", "resident"): LevelDifference(
        "copies",
        "converting batches and moving them to the device",
        "Pass tensors to a step, not arrays, in the dtype that the step computes in. If the data fit on the device, "
        "copy them once before the first step. If not, copy them ahead of the step with tf.data's prefetch_to_device.",
    ),
    ("resident", "fused"): LevelDifference(
        "dispatch",
        "calling TensorFlow once per step",
        "In a loop of your own, run several steps per call: a loop inside the tf.function.",
        what_ifs=("batch", "steps-per-execution"),
    ),
}
"""What lies between an upper and a lower level."""

UNDIVIDED = "Increase --max-time. Then more loops divide it."

MOST_NAMES = 2
"""Most differences that the name of a part lists, if levels between its two are missing."""

FIX_MIN_SHARE = 0.05
"""Smallest share of a step for which a fix is shown."""


def simultaneous_confidence(count: int) -> float:
    """Return the confidence that each of several intervals needs so that all hold together with 95%.

    This is the correction of C. E. Bonferroni, 1936. Holm's procedure would reject a little more, but it gives tests
    and no intervals that hold together.
    """
    return 1 - (1 - stats.CONFIDENCE) / max(1, count)


def difference(upper: Result, lower: Result) -> LevelDifference:
    """Return what lies between two levels, even if levels between them are missing."""
    pair = upper.spec.loop, lower.spec.loop
    if merged_facts(upper.samples).run_eagerly and not merged_facts(lower.samples).run_eagerly:
        what = f"running operations one by one from Python, where {lower.spec.loop} runs a graph"
        return LevelDifference(EAGER, what, "", what_ifs=("graph",))
    if (
        upper.spec.loop == "as-written"
        and merged_facts(upper.samples).fit is not None
        and ("fit", pair[1]) in DIFFERENCES
    ):
        below = DIFFERENCES["fit", pair[1]]  # the program has no loop of its own, but calls `fit`
        what_ifs = ("without-callbacks", *below.what_ifs)
        return below._replace(what=f"{below.what}, with its callbacks", what_ifs=what_ifs)
    if pair == ("as-written", "fit") and _has_own_loop(upper):
        what = "Python, conversions and reads between steps, less the work of fit"
        return DIFFERENCES["as-written", "step"]._replace(what=what)
    if pair in DIFFERENCES:
        return DIFFERENCES[pair]
    loops = LOOPS[LOOPS.index(pair[0]) : LOOPS.index(pair[1]) + 1]
    absent = "the program's own loop" if merged_facts(upper.samples).fit is not None else "Keras fit"
    crossed = [DIFFERENCES[levels] for levels in pairwise(loops) if levels in DIFFERENCES]
    names = [crossing.name for crossing in crossed if pair[0] != "as-written" or crossing.name != absent]
    together = join_words(names)
    many = len(names) > MOST_NAMES
    if pair == (LOOPS[0], LOOPS[-1]):
        name, what = "everything except computing", together
    elif many:
        name, what = together, f"what the loop {pair[1]} leaves out"
    else:
        name, what = together, "; ".join(crossing.what for crossing in crossed)
    return LevelDifference(
        name,
        what,
        UNDIVIDED if many else " ".join(crossing.fix for crossing in crossed if crossing.fix),
        includes_input=any(crossing.includes_input for crossing in crossed),
        what_ifs=() if many else tuple(name for crossing in crossed for name in crossing.what_ifs),
    )


def ladder(levels: Sequence[Result]) -> tuple[list[Part], Interval, int]:
    """Divide a step into parts.

    Args:
        levels: interleaved results of one workload, from the program as written down to the lowest level.

    Returns:
        The parts, the time of the lowest level as a share of the step, and the number of trials.

    Raises:
        ValueError: no trial has all levels.
    """
    blocks = [process_blocks(level) for level in levels]
    trials = sorted(set.intersection(*(set(b) for b in blocks)))
    if not trials:
        raise ValueError("no trial has all levels")
    steps = [faster_half(blocks[0][trial]) for trial in trials]
    ratios = [[math.exp(typical_ratio(blocks[0][t], b[t])) for t in trials] for b in blocks]  # level over whole step
    by_level = [[b[trial] for trial in trials] for b in blocks]
    confidence = simultaneous_confidence(len(levels) - 1)
    facts = merged_facts([sample for level in levels for sample in level.samples])
    facts.fit = merged_facts(levels[0].samples).fit  # the program's own call, not that of the level `fit`
    unfit = {*_PREPARE} - fitting_what_ifs(facts)
    unfit |= set() if _is_fit(levels[0]) else {*_STEPS_PER_CALL}
    unfit |= {"without-callbacks"} if facts.fit and not (facts.fit.callbacks or facts.fit.prints) else set()
    input_fix = _PIPELINE if has_no_pipeline(facts) else ""
    parts = []
    for index, ((upper, above), (lower, below)) in enumerate(pairwise(zip(levels, ratios, strict=True))):
        shares = [a - b for a, b in zip(above, below, strict=True)]
        usual = prior.of_share(by_level[0], by_level[index] if index else None, by_level[index + 1])
        share = Contrast.paired([0.0] * len(shares), shares, usual).interval(confidence)
        measurable = not share.may_be_zero
        level_difference = difference(upper, lower)
        what_ifs = [name for name in level_difference.what_ifs if name not in unfit]
        needs_pipeline = input_fix if level_difference.includes_input else ""
        is_large = measurable and share.value > FIX_MIN_SHARE
        parts.append(
            Part(
                name=level_difference.name,
                what=level_difference.what,
                upper=upper.spec.loop,
                lower=lower.spec.loop,
                seconds=statistics.fmean(share * step for share, step in zip(shares, steps, strict=True)),
                share=share,
                measurable=measurable,
                includes_input=level_difference.includes_input,
                fix=f"{level_difference.fix} {needs_pipeline}".strip() if is_large else "",
                what_ifs=what_ifs if is_large else [],
            )
        )
    return parts, _rest(by_level, ratios[-1]), len(trials)


def _has_own_loop(program: Result) -> bool:
    """Return whether the steps of a program were inspected and run in a loop of its own, not in `fit`."""
    facts = merged_facts(program.samples)
    return facts.fit is None and facts.retraced is not None


def _is_fit(program: Result) -> bool:
    """Return whether Keras' `fit` runs the steps of a program, as far as is known."""
    recognition = program.recognition
    return recognition is None or recognition.chosen.kind == "fit"


def _rest(levels: Sequence[prior.Processes], shares: Sequence[float]) -> Interval:
    """Return the time of the lowest level as a share of the step."""
    usual = prior.of_share(levels[0], levels[-1], None) if len(levels) > 1 else None
    if usual is None:
        return stats.arithmetic(shares)
    interval = Contrast.paired([0.0] * len(shares), shares, usual).interval()
    return interval.model_copy(update={"low": max(0.0, interval.low or 0.0)})
