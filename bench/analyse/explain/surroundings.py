"""The time around the computing as a whole. It may be known even if the trials cannot tell its parts apart."""

from __future__ import annotations

from collections.abc import Iterator

from bench.model.causes import SURROUNDINGS
from bench.model.explanation import Explanation, Finding
from bench.model.loops import BARE
from bench.model.step_parts import STEP_PARTS
from bench.model.words import count, join_words

MIN_SHARE = 0.3
"""If at least this share of the step is surely not computing, that is a finding."""

MOST_NAMES = 3


def surroundings(explanation: Explanation) -> Iterator[Finding]:
    """Yield a finding if much of the step surely surrounds the computing, and no other cause explains half of it."""
    rest = explanation.rest_share
    if explanation.lowest_loop not in BARE or rest.high is None or 1 - rest.high < MIN_SHARE:
        return
    positive = [part for part in explanation.parts if part.share.value > 0]
    least, parts = 1 - rest.high, [part for part in positive if not part.measurable]
    measured = sum(part.share.value for part in positive if part.measurable)
    known = [measured, *(finding.share or 0.0 for finding in explanation.findings if finding.parts)]
    if max(known) >= least / 2 or not parts:
        return
    largest = sorted(parts, key=lambda part: -part.share.value)[:MOST_NAMES]
    names = [part.name for part in largest]
    trials, share = count(explanation.trials, "trial"), min(1.0, 1 - rest.value - measured)
    yield Finding(
        cause=SURROUNDINGS,
        sentence=f"At least {least:.0%} of the step is not computing. About {share:.0%} is mostly {join_words(names)}, "
        f"which {trials} cannot tell apart.",
        evidence=f"the loop {explanation.lowest_level}, which only computes, takes {rest.value:.0%} of the step",
        what_ifs=["batch", *([] if explanation.own_step else ["steps-per-execution"])],
        parts=sorted(frozenset().union(*(part.step_parts for part in largest)), key=STEP_PARTS.index),
        share=share,
        estimated=True,
    )
